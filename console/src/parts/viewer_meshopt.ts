/** A worker that unpacks what meshopt has packed. */
import { MeshoptDecoder } from "three/examples/jsm/libs/meshopt_decoder.module.js";

interface Order {
  id: number;
  count: number;
  size: number;
  source: Uint8Array;
  mode: string;
  filter?: string;
}

self.onmessage = async ({ data: { id, count, size, source, mode, filter } }: MessageEvent<Order>) => {
  try {
    await MeshoptDecoder.ready;
    const bytes = new Uint8Array(count * size);
    MeshoptDecoder.decodeGltfBuffer(bytes, count, size, source, mode, filter);
    self.postMessage({ id, bytes }, { transfer: [bytes.buffer] });
  } catch (error) {
    self.postMessage({ id, error: String(error) });
  }
};
