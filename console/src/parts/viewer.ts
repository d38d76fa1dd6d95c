/** The 3D viewer itself, with all of three.js: loaded only when something is to be turned. */
import "@google/model-viewer";
import { $controls } from "@google/model-viewer/lib/features/controls.js";
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
  framedFoVDeg: number;
  adjustedFoV(degrees: number): number;
  idealCameraDistance(): number;
}
interface Controls {
  changeSource: string;
  setOrbit(theta: number, phi: number, radius: number): void;
  setFieldOfView(degrees: number): void;
}
interface Viewer {
  [$scene]: Scene;
  [$controls]: Controls;
  getCameraOrbit(): { theta: number; phi: number; radius: number };
  getFieldOfView(): number;
  jumpCameraToGoal(): void;
}

/** Where a model is seen from: angles in radians; distance and lens in multiples of those that show the whole model. */
export interface Camera {
  theta: number;
  phi: number;
  distance: number;
  lens: number;
}

const FIRST_CAMERA: Camera = { theta: (25 * Math.PI) / 180, phi: (72 * Math.PI) / 180, distance: 1.05, lens: 1 };

export function getCamera(element: HTMLElement): Camera {
  const viewer = element as unknown as Viewer;
  const { theta, phi, radius } = viewer.getCameraOrbit();
  const scene = viewer[$scene];
  const lens = viewer.getFieldOfView() / scene.adjustedFoV(scene.framedFoVDeg);
  return { theta, phi, distance: radius / scene.idealCameraDistance(), lens };
}

/** Move the camera at once. Without a camera it goes back to where it began. */
export function setCamera(element: HTMLElement, { theta, phi, distance, lens }: Camera = FIRST_CAMERA): void {
  const viewer = element as unknown as Viewer;
  const scene = viewer[$scene];
  viewer[$controls].changeSource = "none";
  viewer[$controls].setOrbit(theta, phi, distance * scene.idealCameraDistance());
  viewer[$controls].setFieldOfView(lens * scene.adjustedFoV(scene.framedFoVDeg));
  viewer.jumpCameraToGoal();
}

/** Draw only the edges, or everything. */
export function setWireframe(viewer: HTMLElement, on: boolean): void {
  const scene = (viewer as unknown as Record<symbol, Scene | undefined>)[$scene];
  scene?.traverse((node) => {
    for (const material of [node.material ?? []].flat()) if ("wireframe" in material) material.wireframe = on;
  });
  scene?.queueRender();
}
