/** The result of a job in a comparison: alone, or moving with others of its kind. */
import { Text } from "@mantine/core";
import {
  type KeyboardEvent,
  lazy,
  type PointerEvent,
  Suspense,
  useEffect,
  useRef,
  useState,
  useSyncExternalStore,
} from "react";
import type { Job, Output } from "../../api/shapes";
import { SignedMedia, useSteadyUrl } from "../../parts/signed_media";
import { WORDS } from "../../vocabulary";
import type { SharedCamera } from "./shared_camera";
import type { SharedPlayer } from "./shared_player";
import { type SharedZoom, WHOLE, type Zoom } from "./shared_zoom";

const ModelView = lazy(() => import("../../parts/model_view").then((module) => ({ default: module.ModelView })));
const HEIGHT = 300;

/** What the results of one kind share. Null: there is only one of the kind. */
export interface Sharing {
  camera: SharedCamera | null;
  player: SharedPlayer | null;
  zoom: SharedZoom | null;
}

export function primaryOf(job: Job | undefined): Output | undefined {
  return job?.outputs.find((output) => output.role === "primary") ?? job?.outputs[0];
}

export function Media({ job, output, sharing }: { job: Job; output: Output; sharing: Sharing }) {
  const preview = job.outputs.find((each) => each.role === "preview" && each.kind === "image");
  if (output.kind === "model") {
    const onShown = sharing.camera ? { onShown: sharing.camera.add } : {};
    return (
      <Suspense fallback={<Text size="sm">{WORDS.loadingTheViewer}</Text>}>
        <ModelView output={output} preview={preview} height={HEIGHT} {...onShown} />
      </Suspense>
    );
  }
  if (output.kind === "video" && sharing.player) return <SharedFilm output={output} player={sharing.player} />;
  if (output.kind === "image" && sharing.zoom) return <SharedPicture output={output} zoom={sharing.zoom} />;
  return <SignedMedia output={output} maxHeight={HEIGHT} />;
}

function Unshown() {
  return (
    <Text size="sm" c="dimmed">
      It cannot be shown here. Download it instead.
    </Text>
  );
}

/** Silent at first: several sounds at once help nobody. */
function SharedFilm({ output, player }: { output: Output; player: SharedPlayer }) {
  const film = useRef<HTMLVideoElement>(null);
  const [failed, setFailed] = useState(false);
  const url = useSteadyUrl(output);
  useEffect(() => (film.current ? player.add(film.current) : undefined), [player]);
  if (failed) return <Unshown />;
  return (
    <video
      ref={film}
      className="compare-film"
      style={output.width && output.height ? { aspectRatio: `${output.width} / ${output.height}` } : undefined}
      src={url}
      controls
      muted
      playsInline
      preload="auto"
      aria-label={WORDS.film}
      onError={() => setFailed(true)}
    />
  );
}

const KEYS: Record<string, (zoom: SharedZoom) => void> = {
  "+": (zoom) => zoom.set({ scale: zoom.get().scale * 1.25 }),
  "-": (zoom) => zoom.set({ scale: zoom.get().scale / 1.25 }),
  "0": (zoom) => zoom.set(WHOLE),
  ArrowLeft: (zoom) => zoom.move(-0.1, 0),
  ArrowRight: (zoom) => zoom.move(0.1, 0),
  ArrowUp: (zoom) => zoom.move(0, -0.1),
  ArrowDown: (zoom) => zoom.move(0, 0.1),
};

/** A picture to zoom by keys, by a double-click or by pinching, and to drag. */
function SharedPicture({ output, zoom }: { output: Output; zoom: SharedZoom }) {
  const seen = useSyncExternalStore(zoom.subscribe, zoom.get);
  const frame = useRef<HTMLDivElement>(null);
  const [failed, setFailed] = useState(false);
  const url = useSteadyUrl(output);
  useEffect(() => (frame.current ? zoomByPinch(frame.current, zoom) : undefined), [zoom]);
  if (failed) return <Unshown />;
  const onKeyDown = (event: KeyboardEvent) => {
    const change = KEYS[event.key === "=" ? "+" : event.key];
    if (!change || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    change(zoom);
  };
  const onPointerMove = (event: PointerEvent<HTMLDivElement>) => {
    if (!(event.buttons & 1)) return;
    const { clientWidth, clientHeight } = event.currentTarget;
    zoom.move(-event.movementX / clientWidth, -event.movementY / clientHeight);
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a frame to zoom in is no fieldset
    <div
      ref={frame}
      className="compare-picture"
      role="group"
      aria-label="Picture. Zoom with plus and minus, move with the arrow keys"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: it takes keys
      tabIndex={0}
      data-zoomed={seen.scale > 1 || undefined}
      onKeyDown={onKeyDown}
      onPointerMove={onPointerMove}
      onDoubleClick={() => zoom.set(seen.scale > 1 ? WHOLE : { scale: 2.5 })}
    >
      <img
        src={url}
        alt=""
        draggable={false}
        style={{ transform: transformOf(seen) }}
        onError={() => setFailed(true)}
      />
    </div>
  );
}

function transformOf({ scale, x, y }: Zoom): string {
  return `translate(${(0.5 - x) * scale * 100}%, ${(0.5 - y) * scale * 100}%) scale(${scale})`;
}

/** Browsers report pinching as Ctrl and the wheel. The wheel alone scrolls the page. */
function zoomByPinch(frame: HTMLElement, zoom: SharedZoom): () => void {
  const onWheel = (event: WheelEvent) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoom.set({ scale: zoom.get().scale * Math.exp(-event.deltaY / 200) });
  };
  frame.addEventListener("wheel", onWheel, { passive: false });
  return () => frame.removeEventListener("wheel", onWheel);
}
