/** One camera for several 3D viewers: turning one turns all. */
import type { ViewerCode } from "../../parts/model_view";
import type { Camera } from "../../parts/viewer";

export class SharedCamera {
  private readonly viewers = new Map<HTMLElement, ViewerCode>();
  private camera: Camera | undefined;

  /** Add a viewer that shows its model. It takes the others' camera. Return what removes it. */
  readonly add = (viewer: HTMLElement, code: ViewerCode): (() => void) => {
    const onChange = (event: Event) => {
      if ((event as CustomEvent<{ source: string }>).detail.source === "user-interaction") this.follow(viewer, code);
    };
    this.viewers.set(viewer, code);
    if (this.camera) code.setCamera(viewer, this.camera);
    viewer.addEventListener("camera-change", onChange);
    return () => {
      viewer.removeEventListener("camera-change", onChange);
      this.viewers.delete(viewer);
    };
  };

  /** Turn all back to where they began. */
  reset(): void {
    this.camera = undefined;
    for (const [viewer, code] of this.viewers) code.setCamera(viewer);
  }

  private follow(turned: HTMLElement, code: ViewerCode): void {
    this.camera = code.getCamera(turned);
    for (const viewer of this.viewers.keys()) if (viewer !== turned) code.setCamera(viewer, this.camera);
  }
}
