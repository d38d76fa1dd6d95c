import { useEffect, useRef, useState } from "react";
import type { Job, Output } from "../../api/shapes";
import { useSteadyUrl } from "../../parts/signed_media";
import { Icon, type IconName } from "../../shell/icons";
import { firstFrame, keptFrame } from "./first_frame";

/** A small picture of what came out, or a sign of what will. */
export function Thumbnail({ job, kind }: { job: Job; kind: string | undefined }) {
  const pictures = job.outputs.filter((output) => output.kind === "image");
  const picture = pictures.find((output) => output.role === "preview") ?? pictures[0];
  const film = job.outputs.find((output) => output.kind === "video");
  return (
    <span className="thumb" aria-hidden="true">
      {picture ? (
        <Still output={picture} isWhole={!film} />
      ) : film ? (
        <Film key={film.id} output={film} />
      ) : (
        <Icon name={signOf(kind ?? job.model)} size={18} />
      )}
    </span>
  );
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
  return kind === "chat" ? "chat" : "models";
}
