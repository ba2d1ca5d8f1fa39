/** The used part of WebAssembly; importing its types would import all types of a browser. */
export interface WasmMemory {
  readonly buffer: ArrayBuffer;
}

/** Compiled module, which is not inspected. */
export type WasmModule = object;

interface Part {
  readonly Memory: new (size: { initial: number }) => WasmMemory;
  readonly Module: new (bytes: Uint8Array) => WasmModule;
  readonly Instance: new (module: WasmModule, imports: object) => { readonly exports: Record<string, unknown> };
}

export const wasm = (globalThis as unknown as { readonly WebAssembly: Part }).WebAssembly;
