/** The files that a job was given: their names, what job they came from, and their bytes while they are kept. */
import { Anchor, Text } from "@mantine/core";
import { useState } from "react";
import { Link } from "wouter";
import type { Job } from "../api/shapes";
import { Icon } from "../shell/icons";
import { FILE_SIGNS, type FileKind, kindOfType } from "./file_kinds";
import { formatBytes } from "./numbers";
import { formatSeconds } from "./time";
import "./input_file.css";

export interface InputFile {
  name?: string;
  preview_url?: string;
  copy_token?: string;
  type?: string;
  content_type?: string;
  role?: string;
  url?: string;
  /** The job whose output it is. */
  job?: string;
  output?: number | string;
  width?: number;
  height?: number;
  duration_seconds?: number;
  bytes?: number;
}

/** A file and its place among the params, such as `file` or `frame_images.0`. */
export interface PlacedFile {
  path: string;
  file: InputFile;
}

const SOURCES = ["sha256", "url", "file_token", "object", "job", "copy_token"];

export function isFile(value: unknown): value is InputFile & Record<string, unknown> {
  return typeof value === "object" && value !== null && SOURCES.some((name) => name in value);
}

/** Return the files of a job in the order of its params. */
export function inputFiles(job: Job): PlacedFile[] {
  return Object.entries(job.input).flatMap(([name, value]) => {
    if (isFile(value)) return [{ path: name, file: value }];
    if (!Array.isArray(value)) return [];
    return value.flatMap((each, index) => (isFile(each) ? [{ path: `${name}.${index}`, file: each }] : []));
  });
}

/** Return the first file of a job. */
export function inputFile(job: Job): InputFile | null {
  return inputFiles(job)[0]?.file ?? null;
}

export function fileKindOf(file: InputFile): FileKind {
  return kindOfType(file.content_type ?? file.type ?? "");
}

/** The params of a job without the links to its files, which work for a while only. */
export function paramsToShow(job: Job): Record<string, unknown> {
  const shown = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(shown);
    if (!isFile(value)) return value;
    const { preview_url: _, ...rest } = value;
    return rest;
  };
  return Object.fromEntries(Object.entries(job.input).map(([name, value]) => [name, shown(value)]));
}

/** The address of the file on this server, whatever name the server calls itself by. */
export function previewUrl(file: InputFile): string | null {
  if (!file.preview_url) return null;
  const { pathname, search } = new URL(file.preview_url, location.href);
  return pathname + search;
}

/** Return the name, size and bytes in one line. */
export function fileFacts(file: InputFile): string {
  const size = file.width && file.height && `${file.width} × ${file.height}`;
  const length = file.duration_seconds && formatSeconds(file.duration_seconds);
  return [file.name, size, length, file.bytes && formatBytes(file.bytes)].filter(Boolean).join(" · ");
}

/** A small picture of the input. Nothing if there is none. */
export function InputThumb({ job }: { job: Job }) {
  const pictures = inputFiles(job).filter(({ file }) => fileKindOf(file) === "image" && file.preview_url);
  const file = pictures[0]?.file;
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

/** Every input with its name, on the page of its job. */
export function InputFiles({ job }: { job: Job }) {
  const files = inputFiles(job).filter(({ file }) => file.preview_url || file.name || file.job);
  return files.map(({ path, file }) => <InputFigure key={path} path={files.length > 1 ? path : ""} file={file} />);
}

function InputFigure({ path, file }: { path: string; file: InputFile }) {
  const [failed, setFailed] = useState(false);
  const words = [path.replace(/\.\d+$/, "").replaceAll("_", " "), file.role?.replaceAll("_", " ")];
  return (
    <figure className="input-picture">
      {!failed && <InputMedia file={file} onError={() => setFailed(true)} />}
      <figcaption>
        {fileFacts(file)}
        {words.some(Boolean) && (
          <Text size="xs" c="dimmed">
            {words.filter(Boolean).join(" · ")}
          </Text>
        )}
        {file.job && (
          <Text size="sm">
            {file.output === "preview" ? "Preview" : "Output"} of{" "}
            <Anchor component={Link} href={`/jobs/${file.job}`} inherit underline="always">
              another job
            </Anchor>
          </Text>
        )}
        {failed && (
          <Text size="sm" c="dimmed">
            {fileKindOf(file) === "image" ? "The picture is no longer kept." : "The file is no longer kept."}
          </Text>
        )}
      </figcaption>
    </figure>
  );
}

function InputMedia({ file, onError }: { file: InputFile; onError: () => void }) {
  const url = previewUrl(file);
  const kind = fileKindOf(file);
  if (!url) return null;
  if (kind === "image") {
    return <img src={url} alt={`Input ${file.name ?? "picture"}`} decoding="async" onError={onError} />;
  }
  if (kind === "video") {
    // biome-ignore lint/a11y/useMediaCaption: a film that somebody gave has no captions
    return <video src={url} controls playsInline preload="metadata" onError={onError} aria-label="Input film" />;
  }
  if (kind === "audio") {
    // biome-ignore lint/a11y/useMediaCaption: a sound that somebody gave has no captions
    return <audio src={url} controls preload="metadata" onError={onError} aria-label="Input sound" />;
  }
  return <Icon name={FILE_SIGNS[kind]} size={36} />;
}
