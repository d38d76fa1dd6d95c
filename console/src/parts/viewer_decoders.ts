/**
 * Stands in for three.js's decoders of compressed models. Those are fetched from elsewhere and run as WebAssembly in
 * workers, all of which the page's policy forbids. A model that needs one says so, and can be downloaded.
 */
class Missing {
  setDecoderPath(): this {
    return this;
  }
  setTranscoderPath(): this {
    return this;
  }
  detectSupport(): this {
    return this;
  }
  preload(): this {
    return this;
  }
  dispose(): void {}
  decodeDracoFile(
    _buffer: unknown,
    _done: unknown,
    _ids: unknown,
    _types: unknown,
    _space: unknown,
    failed: (e: Error) => void,
  ) {
    failed(new Error("compressed"));
  }
  load(_url: string, _done: unknown, _progress: unknown, failed: (e: Error) => void) {
    failed(new Error("compressed"));
  }
}

export { Missing as DRACOLoader, Missing as KTX2Loader };
export const MeshoptDecoder = { supported: false, ready: Promise.resolve() };
