/**
 * three.js's decoders of compressed models, by workers of this server instead of texts from elsewhere. A worker and its
 * WebAssembly are fetched only when a model needs them; the policy of their own files lets them compile, the page's does not.
 */

import * as files from "virtual:decoders";
import { DRACOLoader as Draco } from "three/examples/jsm/loaders/DRACOLoader.js";
import { KTX2Loader as Ktx2 } from "three/examples/jsm/loaders/KTX2Loader.js";

async function binary(address: string): Promise<ArrayBuffer> {
  const response = await fetch(address);
  if (!response.ok) throw new Error(BROKEN);
  return response.arrayBuffer();
}

const BROKEN = "The decoder could not be started.";

export class DRACOLoader extends Draco {
  override async _getWorker(task: number, cost: number) {
    const worker = await super._getWorker(task, cost);
    worker.onerror = () => {
      for (const { reject } of Object.values(worker._callbacks)) reject(new Error(BROKEN));
    };
    return worker;
  }

  override _initDecoder(): Promise<void> {
    this.decoderPending ??= binary(files.dracoBinary).then((wasmBinary) => {
      this.decoderConfig = { wasmBinary };
      this.workerSourceURL = files.draco;
    });
    return this.decoderPending;
  }
}

export class KTX2Loader extends Ktx2 {
  override init(): Promise<void> {
    this.transcoderPending ??= binary(files.basisBinary).then((compiled) => {
      this.workerPool.setWorkerCreator(() => {
        const worker = new Worker(files.basis);
        const transcoderBinary = compiled.slice(0);
        worker.onerror = () => worker.dispatchEvent(new MessageEvent("message", { data: { type: "error", data: {} } }));
        worker.postMessage({ type: "init", config: this.workerConfig, transcoderBinary }, [transcoderBinary]);
        return worker;
      });
    });
    return this.transcoderPending;
  }
}

interface Waiting {
  resolve: (bytes: Uint8Array) => void;
  reject: (error: Error) => void;
}

const waiting = new Map<number, Waiting>();
let meshopt: Worker | null = null;
let asked = 0;

function meshoptWorker(): Worker {
  if (meshopt) return meshopt;
  meshopt = new Worker(new URL("./viewer_meshopt.ts", import.meta.url), { type: "module" });
  meshopt.onmessage = ({ data }: MessageEvent<{ id: number; bytes?: Uint8Array; error?: string }>) => {
    const { resolve, reject } = waiting.get(data.id) ?? {};
    waiting.delete(data.id);
    if (data.bytes) resolve?.(data.bytes);
    else reject?.(new Error(data.error));
  };
  meshopt.onerror = () => {
    for (const { reject } of waiting.values()) reject(new Error(BROKEN));
    waiting.clear();
    meshopt = null;
  };
  return meshopt;
}

export const MeshoptDecoder = {
  supported: true,
  ready: Promise.resolve(),
  decodeGltfBufferAsync(count: number, size: number, source: Uint8Array, mode: string, filter?: string) {
    return new Promise<Uint8Array>((resolve, reject) => {
      asked += 1;
      waiting.set(asked, { resolve, reject });
      meshoptWorker().postMessage({ id: asked, count, size, source, mode, filter });
    });
  },
};
