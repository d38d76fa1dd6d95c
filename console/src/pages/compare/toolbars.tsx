/** Controls for all results of one kind at once. */
import { ActionIcon, Button, Text } from "@mantine/core";
import { useSyncExternalStore } from "react";
import { formatSeconds } from "../../parts/time";
import { Icon } from "../../shell/icons";
import type { SharedCamera } from "./shared_camera";
import type { SharedPlayer } from "./shared_player";
import { MOST_ZOOM, type SharedZoom, WHOLE } from "./shared_zoom";

const FRAME_SECONDS = 1 / 24;

export function PlayerBar({ player }: { player: SharedPlayer }) {
  const { isPlaying, time, duration } = useSyncExternalStore(player.subscribe, player.get);
  const words = `${Math.min(time, duration).toFixed(1)} s of ${formatSeconds(duration)}`;
  return (
    <section className="card compare-bar" aria-label="All films">
      <ActionIcon
        size="lg"
        aria-label={isPlaying ? "Pause all" : "Play all"}
        title={isPlaying ? "Pause all" : "Play all"}
        disabled={duration === 0}
        onClick={() => player.toggle()}
      >
        <Icon name={isPlaying ? "pause" : "play"} />
      </ActionIcon>
      <input
        type="range"
        aria-label="Position in all films"
        aria-valuetext={words}
        min={0}
        max={duration || 1}
        step={FRAME_SECONDS}
        value={Math.min(time, duration)}
        disabled={duration === 0}
        onChange={(event) => player.seek(event.currentTarget.valueAsNumber)}
      />
      <Text size="sm" c="dimmed" span className="compare-time">
        {words}
      </Text>
    </section>
  );
}

export function CameraBar({ camera }: { camera: SharedCamera }) {
  return (
    <section className="card compare-bar" aria-label="All 3D models">
      <Text size="sm" c="dimmed">
        The models turn and zoom together: drag one, or use the arrow keys.
      </Text>
      <Button
        variant="default"
        size="compact-sm"
        leftSection={<Icon name="refresh" size={15} />}
        onClick={() => camera.reset()}
      >
        Reset view
      </Button>
    </section>
  );
}

export function ZoomBar({ zoom }: { zoom: SharedZoom }) {
  const { scale } = useSyncExternalStore(zoom.subscribe, zoom.get);
  return (
    <section className="card compare-bar" aria-label="All pictures">
      <Text size="sm" span id="compare-zoom">
        Zoom
      </Text>
      <input
        type="range"
        aria-labelledby="compare-zoom"
        aria-valuetext={`${Math.round(scale * 100)} %`}
        min={1}
        max={MOST_ZOOM}
        step={0.1}
        value={scale}
        onChange={(event) => zoom.set({ scale: event.currentTarget.valueAsNumber })}
      />
      <Text size="sm" c="dimmed" span className="compare-time">
        {Math.round(scale * 100)} %
      </Text>
      <Button variant="default" size="compact-sm" disabled={scale === 1} onClick={() => zoom.set(WHOLE)}>
        Whole picture
      </Button>
    </section>
  );
}
