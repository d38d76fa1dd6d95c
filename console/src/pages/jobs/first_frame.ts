/** A film's first picture, taken one film at a time so that the rest of the page keeps its connections. */
import type { Output } from "../../api/shapes";
import { localUrl } from "../../parts/signed_media";

const WIDTH = 128;
const HEIGHT = 80;
const taken = new Map<string, Promise<HTMLCanvasElement | null>>();
let turn: Promise<unknown> = Promise.resolve();

export function firstFrame(output: Output): Promise<HTMLCanvasElement | null> {
  const known = taken.get(output.id);
  if (known) return known;
  const frame = turn.then(() => take(localUrl(output.url)));
  taken.set(output.id, frame);
  void frame.then((picture) => picture ?? taken.delete(output.id));
  turn = frame;
  return frame;
}

function take(url: string): Promise<HTMLCanvasElement | null> {
  return new Promise((resolve) => {
    const film = document.createElement("video");
    const end = (picture: HTMLCanvasElement | null) => {
      clearTimeout(timer);
      film.removeAttribute("src");
      film.load();
      resolve(picture);
    };
    const timer = setTimeout(() => end(null), 5000);
    film.muted = true;
    film.preload = "auto";
    film.onerror = () => film.src && end(null);
    film.onloadeddata = () => end(draw(film));
    film.src = url;
  });
}

/** The middle of the picture, as large as the thumbnail. */
function draw(film: HTMLVideoElement): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = WIDTH;
  canvas.height = HEIGHT;
  const scale = Math.max(WIDTH / film.videoWidth, HEIGHT / film.videoHeight);
  const [width, height] = [film.videoWidth * scale, film.videoHeight * scale];
  canvas.getContext("2d")?.drawImage(film, (WIDTH - width) / 2, (HEIGHT - height) / 2, width, height);
  return canvas;
}
