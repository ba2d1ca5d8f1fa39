/** C structures as memory: fields in order, each at a multiple of its own size, as every C compiler lays them out. */
import { ArgumentError } from "../errors.js";
import { floatOf, integerOf } from "./numbers.js";

type FieldType = "i32" | "u32" | "f32" | "f64" | "u64";

const SIZES: Record<FieldType, number> = { i32: 4, u32: 4, f32: 4, f64: 8, u64: 8 };

/** A structure that begins with its own size, as those of the header do. `Fields` are its names, all numbers. */
export class Struct<Fields> {
  readonly size: number;
  readonly #offsets = new Map<string, readonly [type: FieldType, offset: number]>();

  constructor(fields: Readonly<Record<keyof Fields, FieldType>>) {
    let end = 4;
    let widest = 4;
    for (const [name, type] of Object.entries<FieldType>(fields)) {
      const width = SIZES[type];
      const offset = Math.ceil(end / width) * width;
      this.#offsets.set(name, [type, offset]);
      end = offset + width;
      widest = Math.max(widest, width);
    }
    this.size = Math.ceil(end / widest) * widest;
  }

  /**
   * Memory with these values; missing fields are 0.
   *
   * @throws ArgumentError for an unknown name, or a number that its type cannot hold.
   */
  write(values: Partial<Fields> = {}): Uint8Array {
    // Made of 64-bit words for their alignment.
    const memory = new Uint8Array(new BigUint64Array(Math.ceil(this.size / 8)).buffer, 0, this.size);
    const view = new DataView(memory.buffer);
    view.setUint32(0, this.size, true);
    for (const [name, value] of Object.entries(values)) {
      if (value === undefined) continue;
      const [type, offset] = this.#offsets.get(name) ?? this.#unknown(name);
      const number = checked(value, name, type);
      if (type === "i32") view.setInt32(offset, number, true);
      else if (type === "u32") view.setUint32(offset, number, true);
      else if (type === "f32") view.setFloat32(offset, number, true);
      else if (type === "f64") view.setFloat64(offset, number, true);
      else view.setBigUint64(offset, BigInt(number), true);
    }
    return memory;
  }

  read(memory: Uint8Array): Fields {
    const view = new DataView(memory.buffer, memory.byteOffset);
    const values: Record<string, number> = {};
    for (const [name, [type, offset]] of this.#offsets) {
      if (type === "i32") values[name] = view.getInt32(offset, true);
      else if (type === "u32") values[name] = view.getUint32(offset, true);
      else if (type === "f32") values[name] = view.getFloat32(offset, true);
      else if (type === "f64") values[name] = view.getFloat64(offset, true);
      else values[name] = Number(view.getBigUint64(offset, true));
    }
    return values as Fields;
  }

  #unknown(name: string): never {
    throw new ArgumentError(`unknown option ${name}: expected one of ${[...this.#offsets.keys()].join(", ")}`);
  }
}

function checked(value: unknown, name: string, type: FieldType): number {
  if (type === "f32" || type === "f64") return floatOf(value, name);
  return integerOf(value, name, type === "u64" ? "size" : type);
}
