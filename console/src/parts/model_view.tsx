/** A 3D model to turn around: by pointer, touch or arrow keys. */
import { Alert, Loader, Switch, Text } from "@mantine/core";
import { createElement, useEffect, useRef, useState } from "react";
import type { Output } from "../api/shapes";
import { localUrl, useSteadyUrl } from "./signed_media";

interface Props {
  output: Output;
  /** A picture of it, shown until it is there. */
  preview?: Output | undefined;
  height?: number;
  /** Without the switch for the wireframe, where there is little room. */
  isSmall?: boolean;
  /** Called when the model is shown, with the viewer and its code. It may return what is to be done at the end. */
  onShown?: (viewer: HTMLElement, code: ViewerCode) => () => void;
}

export type ViewerCode = typeof import("./viewer");

type Standing = "loading" | "shown" | "failed";

/** Only GLB can be shown. Of other formats there is a picture at most. */
export function ModelView(props: Props) {
  const { output, preview } = props;
  if (output.content_type === "model/gltf-binary") return <Viewer {...props} />;
  return (
    <div>
      {preview && <img className="viewer-still" src={localUrl(preview.url)} alt="3D model" />}
      <Text size="sm" c="dimmed">
        This format cannot be turned here. Download the model instead.
      </Text>
    </div>
  );
}

function Viewer({ output, preview, height = 380, isSmall, onShown }: Props) {
  const url = useSteadyUrl(output);
  return (
    <ModelStage url={url} poster={preview ? localUrl(preview.url) : undefined} {...{ height, isSmall, onShown }} />
  );
}

interface StageProps {
  url: string;
  poster?: string | undefined;
  height: number;
  isSmall?: boolean | undefined;
  onShown?: Props["onShown"] | undefined;
}

/** A GLB by its address. */
export function ModelStage({ url, poster, height, isSmall, onShown }: StageProps) {
  const viewer = useRef<HTMLElement>(null);
  const [code, setCode] = useState<ViewerCode | null>(null);
  const [standing, setStanding] = useState<Standing>("loading");
  const [edges, setEdges] = useState(false);

  useEffect(() => {
    let gone = false;
    import("./viewer").then(
      (loaded) => gone || setCode(loaded),
      () => gone || setStanding("failed"),
    );
    return () => {
      gone = true;
    };
  }, []);

  useEffect(() => {
    const element = viewer.current;
    if (!element || !code) return;
    const shown = () => setStanding("shown");
    const failed = () => setStanding("failed");
    element.addEventListener("load", shown);
    element.addEventListener("error", failed);
    return () => {
      element.removeEventListener("load", shown);
      element.removeEventListener("error", failed);
    };
  }, [code]);

  useEffect(() => {
    if (viewer.current && code && standing === "shown") code.setWireframe(viewer.current, edges);
  }, [code, edges, standing]);

  useEffect(() => {
    if (viewer.current && code && standing === "shown") return onShown?.(viewer.current, code);
  }, [code, onShown, standing]);

  if (standing === "failed") {
    return (
      <Alert className="notice" color="gate" title="This model cannot be shown here">
        Your browser may lack WebGL, or the viewer does not support this model's compression. Download the model
        instead.
      </Alert>
    );
  }
  return (
    <div className="viewer" style={{ height }} data-standing={standing}>
      {standing === "loading" && (
        <div className="viewer-waiting" role="status" aria-label="Loading the model">
          {poster ? <img src={poster} alt="" /> : null}
          <Loader size="sm" type="dots" />
        </div>
      )}
      {code &&
        createElement("model-viewer", {
          ref: viewer,
          src: url,
          alt: "3D model: turn it with the arrow keys",
          "camera-controls": true,
          "interaction-prompt": "none",
          // Moved sideways, models of different sizes could not be shown alike.
          ...(onShown ? { "disable-pan": true } : {}),
          "shadow-intensity": "0.6",
          "touch-action": "pan-y",
          "camera-orbit": "25deg 72deg auto",
          exposure: "1.05",
        })}
      {standing === "shown" && !isSmall && (
        <Switch
          className="viewer-edges"
          label="Wireframe"
          size="xs"
          checked={edges}
          onChange={(event) => setEdges(event.currentTarget.checked)}
        />
      )}
    </div>
  );
}
