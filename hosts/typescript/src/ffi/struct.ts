/** C structures as memory: fields in order, each at a multiple of its own size, as every C compiler lays them out. */

type FieldType = "i32" | "u32" | "f32" | "f64" | "u64";

const SIZES: Record<FieldType, number> = { i32: 4, u32: 4, f32: 4, f64: 8, u64: 8 };

export type Fields = Readonly<Record<string, FieldType>>;
export type Values<F extends Fields> = { -readonly [Name in keyof F]: number };

/** A structure that begins with its own size, as those of the header do. */
export class Struct<F extends Fields> {
  readonly size: number;
  readonly #offsets: readonly [name: string, type: FieldType, offset: number][];

  constructor(readonly fields: F) {
    let end = 4;
    let widest = 4;
    const offsets: [string, FieldType, number][] = [];
    for (const [name, type] of Object.entries(fields)) {
      const width = SIZES[type];
      const offset = Math.ceil(end / width) * width;
      offsets.push([name, type, offset]);
      end = offset + width;
      widest = Math.max(widest, width);
    }
    this.#offsets = offsets;
    this.size = Math.ceil(end / widest) * widest;
  }

  /** Memory with these values, 0 for those that are not given. */
  write(values: Partial<Values<F>> = {}): Uint8Array {
    // Of 64-bit words, so that it is aligned.
    const memory = new Uint8Array(new BigUint64Array(Math.ceil(this.size / 8)).buffer, 0, this.size);
    const view = new DataView(memory.buffer);
    view.setUint32(0, this.size, true);
    for (const [name, type, offset] of this.#offsets) {
      const value = values[name] ?? 0;
      if (type === "i32") view.setInt32(offset, value, true);
      else if (type === "u32") view.setUint32(offset, value, true);
      else if (type === "f32") view.setFloat32(offset, value, true);
      else if (type === "f64") view.setFloat64(offset, value, true);
      else view.setBigUint64(offset, BigInt(value), true);
    }
    return memory;
  }

  read(memory: Uint8Array): Values<F> {
    const view = new DataView(memory.buffer, memory.byteOffset);
    const values: Record<string, number> = {};
    for (const [name, type, offset] of this.#offsets) {
      if (type === "i32") values[name] = view.getInt32(offset, true);
      else if (type === "u32") values[name] = view.getUint32(offset, true);
      else if (type === "f32") values[name] = view.getFloat32(offset, true);
      else if (type === "f64") values[name] = view.getFloat64(offset, true);
      else values[name] = Number(view.getBigUint64(offset, true));
    }
    return values as Values<F>;
  }
}
