/** The 3D viewer itself, with all of three.js: loaded only when something is to be turned. */
import "@google/model-viewer";
import { $scene } from "@google/model-viewer/lib/model-viewer-base.js";

interface Material {
  wireframe?: boolean;
  map?: unknown;
}
interface Node {
  material?: Material | Material[];
}
interface Scene {
  traverse(visit: (node: Node) => void): void;
  queueRender(): void;
}

/** Draw only the edges, or everything. */
export function setWireframe(viewer: HTMLElement, on: boolean): void {
  const scene = (viewer as unknown as Record<symbol, Scene | undefined>)[$scene];
  scene?.traverse((node) => {
    for (const material of [node.material ?? []].flat()) if ("wireframe" in material) material.wireframe = on;
  });
  scene?.queueRender();
}
