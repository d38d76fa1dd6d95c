/**
 * A film's first picture, taken one film at a time so that the rest of the page keeps its connections. The latest are
 * kept in the tab: after a reload they are there at once.
 */
import type { Output } from "../../api/shapes";
import { localUrl } from "../../parts/signed_media";

const WIDTH = 128;
const HEIGHT = 80;
const TIMEOUT = 15_000;
const PLACE = "penstock.frames";
const MOST = 60;
const taken = new Map<string, Promise<string | null>>();
let turn: Promise<unknown> = Promise.resolve();

/** Return the picture of an output that was taken before, also before a reload. */
export function keptFrame(id: string): string | null {
  return readKept()[id] ?? null;
}

/** Return the picture as a data URL, or null if the film cannot be read. */
export function firstFrame(output: Output): Promise<string | null> {
  const known = taken.get(output.id);
  if (known) return known;
  const frame = turn.then(() => take(localUrl(output.url)));
  taken.set(output.id, frame);
  void frame.then((picture) => (picture ? keep(output.id, picture) : taken.delete(output.id)));
  turn = frame;
  return frame;
}

function readKept(): Record<string, string> {
  try {
    return JSON.parse(sessionStorage.getItem(PLACE) ?? "{}") as Record<string, string>;
  } catch {
    return {};
  }
}

function keep(id: string, picture: string): void {
  try {
    const latest = Object.entries({ ...readKept(), [id]: picture }).slice(-MOST);
    sessionStorage.setItem(PLACE, JSON.stringify(Object.fromEntries(latest)));
  } catch {
    // A full storage: the picture is taken again after a reload.
  }
}

function take(url: string): Promise<string | null> {
  return new Promise((resolve) => {
    const film = document.createElement("video");
    const end = (picture: string | null) => {
      clearTimeout(timer);
      film.removeAttribute("src");
      film.load();
      resolve(picture);
    };
    const timer = setTimeout(() => end(null), TIMEOUT);
    film.muted = true;
    film.preload = "auto";
    film.onerror = () => film.src && end(null);
    film.onloadeddata = () => end(draw(film));
    film.src = url;
  });
}

/** The middle of the picture, as large as the thumbnail. */
function draw(film: HTMLVideoElement): string {
  const canvas = document.createElement("canvas");
  canvas.width = WIDTH;
  canvas.height = HEIGHT;
  const scale = Math.max(WIDTH / film.videoWidth, HEIGHT / film.videoHeight);
  const [width, height] = [film.videoWidth * scale, film.videoHeight * scale];
  canvas.getContext("2d")?.drawImage(film, (WIDTH - width) / 2, (HEIGHT - height) / 2, width, height);
  return canvas.toDataURL("image/jpeg", 0.8);
}
