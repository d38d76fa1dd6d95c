/** One zoom for several pictures. */

/** `x` and `y` are the point in the middle, as fractions of the picture. */
export interface Zoom {
  scale: number;
  x: number;
  y: number;
}

export const WHOLE: Zoom = { scale: 1, x: 0.5, y: 0.5 };
export const MOST_ZOOM = 8;

export class SharedZoom {
  private zoom = WHOLE;
  private readonly listeners = new Set<() => void>();

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly get = (): Zoom => this.zoom;

  /** Change the zoom, but never so that a picture leaves its frame. */
  set(change: Partial<Zoom>): void {
    const { scale, x, y } = { ...this.zoom, ...change };
    const bounded = Math.min(MOST_ZOOM, Math.max(1, scale));
    const margin = 0.5 / bounded;
    const inside = (value: number) => Math.min(1 - margin, Math.max(margin, value));
    this.zoom = { scale: bounded, x: inside(x), y: inside(y) };
    for (const listener of this.listeners) listener();
  }

  /** Move by fractions of the frame. */
  move(right: number, down: number): void {
    const { scale, x, y } = this.zoom;
    this.set({ x: x + right / scale, y: y + down / scale });
  }
}
