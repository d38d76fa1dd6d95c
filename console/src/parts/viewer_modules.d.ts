/** Types of the used parts of three.js, which has none, and of tools/decoders.mjs. */
declare module "virtual:decoders" {
  export const draco: string;
  export const dracoBinary: string;
  export const basis: string;
  export const basisBinary: string;
}

declare module "three/examples/jsm/loaders/DRACOLoader.js" {
  interface DracoWorker extends Worker {
    _callbacks: Record<number, { reject: (error: Error) => void }>;
  }
  export class DRACOLoader {
    decoderPending: Promise<void> | null;
    decoderConfig: { wasmBinary?: ArrayBuffer };
    workerSourceURL: string;
    _initDecoder(): Promise<void>;
    _getWorker(task: number, cost: number): Promise<DracoWorker>;
  }
}

declare module "three/examples/jsm/loaders/KTX2Loader.js" {
  export class KTX2Loader {
    transcoderPending: Promise<void> | null;
    workerConfig: unknown;
    workerPool: { setWorkerCreator(create: () => Worker): void };
    init(): Promise<void>;
  }
}

declare module "three/examples/jsm/libs/meshopt_decoder.module.js" {
  export const MeshoptDecoder: {
    ready: Promise<void>;
    decodeGltfBuffer(
      target: Uint8Array,
      count: number,
      size: number,
      source: Uint8Array,
      mode: string,
      filter?: string,
    ): void;
  };
}
