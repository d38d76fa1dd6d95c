/** One output in the gallery. A film plays while it is pointed at or has the focus. */
import { useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import type { Job, Output } from "../../api/shapes";
import { useSteadyUrl } from "../../parts/signed_media";
import { Ago, formatSeconds } from "../../parts/time";
import { Icon } from "../../shell/icons";
import { nameOf } from "../jobs/job_words";
import { signOf } from "../jobs/thumbnail";
import { UseAsInput } from "../playground/use_as_input";
import { primaryOf } from "./kinds";

export function GalleryItem({ job }: { job: Job }) {
  const [isActive, setActive] = useState(false);
  const output = primaryOf(job);
  const preview = job.outputs.find((each) => each.role === "preview" && each.kind === "image");
  if (!output) return null;
  const name = nameOf(job);
  return (
    <div className="gallery-place">
      <Link
        className="gallery-item"
        href={`/jobs/${job.id}`}
        title={name}
        onPointerEnter={() => setActive(true)}
        onPointerLeave={() => setActive(false)}
        onFocus={() => setActive(true)}
        onBlur={() => setActive(false)}
      >
        <span className="gallery-media" aria-hidden="true">
          <Media output={output} preview={preview} isActive={isActive} />
          <Mark output={output} />
        </span>
        <span className="gallery-name">{name}</span>
        <span className="gallery-under">
          <span>{job.model}</span>
          <Ago time={job.created_at} />
        </span>
      </Link>
      <span className="gallery-use">
        <UseAsInput job={job} output={output} isBare />
      </span>
    </div>
  );
}

interface MediaProps {
  output: Output;
  preview: Output | undefined;
  isActive: boolean;
}

function Media({ output, preview, isActive }: MediaProps) {
  if (output.kind === "video") return <Film output={output} isActive={isActive} />;
  const picture = output.kind === "image" ? output : preview;
  if (picture) return <Still output={picture} isWhole={output.kind === "model"} />;
  return <Icon name={signOf(output.kind)} size={40} />;
}

/** A thing is shown whole, a scene fills the place. */
function Still({ output, isWhole }: { output: Output; isWhole: boolean }) {
  return <img src={useSteadyUrl(output)} alt="" loading="lazy" decoding="async" data-whole={isWhole || undefined} />;
}

/** The film's first picture once it is near the view; it plays while it is active. */
function Film({ output, isActive }: { output: Output; isActive: boolean }) {
  const film = useRef<HTMLVideoElement>(null);
  const [isNear, setNear] = useState(false);
  const url = useSteadyUrl(output);
  useEffect(() => {
    if (!film.current) return;
    const watch = new IntersectionObserver(([entry]) => entry?.isIntersecting && setNear(true), {
      rootMargin: "200px",
    });
    watch.observe(film.current);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    const element = film.current;
    if (!element || !isNear) return;
    if (isActive && !matchMedia("(prefers-reduced-motion: reduce)").matches) {
      element.play().catch(() => undefined); // it may be paused again before it has begun
    } else if (!isActive) {
      element.pause();
      if (element.currentTime > 0) element.currentTime = 0;
    }
  }, [isActive, isNear]);
  return (
    <video
      ref={film}
      {...(isNear ? { src: url } : {})}
      muted
      loop
      playsInline
      disablePictureInPicture
      preload="metadata"
      tabIndex={-1}
    />
  );
}

function Mark({ output }: { output: Output }) {
  const isLong = output.kind === "video" || output.kind === "audio";
  const text = isLong ? formatSeconds(output.duration_seconds) : output.kind === "model" ? "3D" : "";
  return text ? <span className="gallery-mark">{text}</span> : null;
}
