/** The picture that a job was given: its name, and its bytes while the job is kept. */
import { Text } from "@mantine/core";
import { useState } from "react";
import type { Job } from "../api/shapes";
import { formatBytes } from "./numbers";
import "./input_file.css";

export interface InputFile {
  name?: string;
  preview_url?: string;
  copy_token?: string;
  type?: string;
  url?: string;
  width?: number;
  height?: number;
  bytes?: number;
}

export function inputFile(job: Job): InputFile | null {
  const { file } = job.input;
  return typeof file === "object" && file !== null ? (file as InputFile) : null;
}

/** The params of a job without the link to its picture, which works for a while only. */
export function paramsToShow(job: Job): Record<string, unknown> {
  const file = inputFile(job);
  if (!file) return job.input;
  const { preview_url: _, ...rest } = file;
  return { ...job.input, file: rest };
}

/** The address of the picture on this server, whatever name the server calls itself by. */
export function previewUrl(file: InputFile): string | null {
  if (!file.preview_url) return null;
  const { pathname, search } = new URL(file.preview_url, location.href);
  return pathname + search;
}

/** Return the name, size and bytes in one line. */
export function fileFacts(file: InputFile): string {
  const size = file.width && file.height && `${file.width} × ${file.height}`;
  return [file.name, size, file.bytes && formatBytes(file.bytes)].filter(Boolean).join(" · ");
}

/** A small picture of the input. Nothing if there is none. */
export function InputThumb({ job }: { job: Job }) {
  const file = inputFile(job);
  const url = file && previewUrl(file);
  const [failed, setFailed] = useState(false);
  if (!url || failed) return null;
  return (
    <img
      className="input-thumb"
      src={url}
      alt={`Input ${file.name ?? "picture"}`}
      loading="lazy"
      decoding="async"
      onError={() => setFailed(true)}
    />
  );
}

/** The input with its name, on the page of its job. */
export function InputPicture({ job }: { job: Job }) {
  const file = inputFile(job);
  const url = file && previewUrl(file);
  const [failed, setFailed] = useState(false);
  if (!file || !(url || file.name)) return null;
  return (
    <figure className="input-picture">
      {url && !failed && (
        <img src={url} alt={`Input ${file.name ?? "picture"}`} decoding="async" onError={() => setFailed(true)} />
      )}
      <figcaption>
        {fileFacts(file)}
        {failed && (
          <Text size="sm" c="dimmed">
            The picture is no longer kept.
          </Text>
        )}
      </figcaption>
    </figure>
  );
}
