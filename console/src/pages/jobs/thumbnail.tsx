import { useEffect, useRef, useState } from "react";
import type { Job, Output } from "../../api/shapes";
import { useSteadyUrl } from "../../parts/signed_media";
import { Icon, type IconName } from "../../shell/icons";
import { firstFrame, keptFrame } from "./first_frame";

/** A small picture of what came out, or a sign of what will. */
export function Thumbnail({ job, kind }: { job: Job; kind: string | undefined }) {
  const output = job.outputs.find((each) => each.role === "primary") ?? job.outputs[0];
  return (
    <span className="thumb fit" aria-hidden="true">
      {output ? (
        <OutputThumb outputs={job.outputs} output={output} />
      ) : (
        <Icon name={signOf(kind ?? job.model)} size={18} />
      )}
    </span>
  );
}

/** An output as a picture, as large as its place: itself, its preview, its first frame or a sign. */
export function OutputThumb({ outputs, output }: { outputs: Output[]; output: Output }) {
  const preview = outputs.find((each) => each.role === "preview" && each.kind === "image");
  if (output.kind === "image") return <Still output={output} isWhole />;
  if (preview) return <Still output={preview} isWhole={output.kind !== "video"} />;
  if (output.kind === "video") return <Film key={output.id} output={output} />;
  return <Icon name={signOf(output.kind)} size={22} />;
}

/** A thing is shown whole, a scene fills the place. */
function Still({ output, isWhole }: { output: Output; isWhole: boolean }) {
  return <img src={useSteadyUrl(output)} alt="" loading="lazy" decoding="async" data-whole={isWhole || undefined} />;
}

/** A film without a preview shows its first picture, once it comes into view. */
function Film({ output }: { output: Output }) {
  const [picture, setPicture] = useState(() => keptFrame(output.id));
  const place = useRef<HTMLSpanElement>(null);
  const film = useRef(output);
  useEffect(() => {
    if (picture || !place.current) return;
    let isGone = false;
    const watch = new IntersectionObserver(
      ([entry]) => {
        if (!entry?.isIntersecting) return;
        watch.disconnect();
        void firstFrame(film.current).then((found) => isGone || setPicture(found));
      },
      { rootMargin: "100px" },
    );
    watch.observe(place.current);
    return () => {
      isGone = true;
      watch.disconnect();
    };
  }, [picture]);
  return (
    <span ref={place} className="thumb-film">
      {picture ? <img src={picture} alt="" /> : <Icon name="video" size={18} />}
    </span>
  );
}

export function signOf(kind: string): IconName {
  if (kind.includes("video")) return "video";
  if (kind.includes("image") && !kind.includes("model")) return "image";
  if (kind.includes("audio") || kind.includes("speech")) return "sound";
  if (kind === "text") return "text";
  return kind === "chat" ? "chat" : "models";
}
