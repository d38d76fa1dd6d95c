/** Ready pipelines, made of the models that the server lists. */
import type { Model } from "../../api/shapes";
import type { FileKind } from "../../parts/file_kinds";
import { isHosted } from "../../parts/model_order";
import { slotsOf } from "../playground/file_slots";
import { type Draft, textOf } from "./draft";

export interface Example extends Draft {
  title: string;
}

interface Wish {
  kind: string;
  /** Kind of its input; null: a prompt or text. */
  takes: FileKind | null;
  /** Preferred model. */
  first: string;
}

const PICTURE: Wish = { kind: "image", takes: null, first: "sketch_1" };
const MODEL: Wish = { kind: "3d", takes: "image", first: "inflate_1" };
const TURNTABLE: Wish = { kind: "video", takes: "3d", first: "turntable_1" };
const STILL: Wish = { kind: "video", takes: "image", first: "still_film" };
const SPEECH: Wish = { kind: "audio", takes: null, first: "hibari_text_to_speech" };
const WRITING: Wish = { kind: "text", takes: "audio", first: "whisper_speech_to_text" };

export function examplesOf(models: Model[]): Example[] {
  const step = (name: string, wish: Wish, input: Record<string, unknown>) => stepFor(models, name, wish, input);
  const prompt = { param: "prompt" };
  const picture = step("picture", PICTURE, { prompt });
  const subject = step("picture", PICTURE, { prompt, background: "transparent" });
  const from = (name: string) => ({ step: name });
  const examples = [
    {
      title: "Picture, 3D model, turntable film",
      params: { prompt: "a red fox" },
      steps: [
        subject,
        step("model", MODEL, from("picture")),
        step("film", TURNTABLE, { ...from("model"), output: "primary" }),
      ],
    },
    {
      title: "Picture, then a film of it",
      params: { prompt: "a paper boat on a rainy street" },
      steps: [picture, step("film", STILL, from("picture"))],
    },
    {
      title: "A picture and a film for each prompt",
      params: { prompts: ["a red fox", "a blue boat", "a green tree"] },
      steps: [
        withList(step("picture", PICTURE, { prompt: { item: true } })),
        withList(step("film", STILL, from("picture")), from("picture")),
      ],
    },
    {
      title: "Speech, then its transcript",
      params: { text: "A penstock feeds water to a turbine." },
      steps: [step("speech", SPEECH, { text: { param: "text" } }), step("transcript", WRITING, from("speech"))],
    },
  ];
  return examples.flatMap(({ title, params, steps }) =>
    steps.every((each) => each !== null) ? [{ title, params, text: textOf({ steps }) }] : [],
  );
}

type Step = Record<string, unknown>;

function withList(step: Step | null, list: unknown = { param: "prompts" }): Step | null {
  if (!step) return null;
  const { params, ...head } = step;
  return { ...head, for_each: list, params };
}

/** Return a step with the preferred model, else with the cheapest kind of vendor that can do it. */
function stepFor(models: Model[], name: string, wish: Wish, input: Record<string, unknown>): Step | null {
  const fitting = models
    .filter((model) => model.kind === wish.kind && isFitting(model, wish))
    .toSorted((a, b) => rank(a, wish) - rank(b, wish));
  const [model] = fitting;
  if (!model) return null;
  return { name, model: model.id, params: { ...required(model), ...inputOf(model, wish, input) } };
}

function isFitting(model: Model, { takes }: Wish): boolean {
  const properties = (model.params.properties ?? {}) as object;
  if (takes === null) return "prompt" in properties || "text" in properties;
  return slotsOf(model).some((slot) => slot.kinds.includes(takes));
}

function rank(model: Model, wish: Wish): number {
  if (model.id === wish.first) return 0;
  if (model.vendors.some(isHosted)) return 3;
  return model.vendors.includes("sim") && !model.id.startsWith("sim_") ? 2 : 1;
}

/** Required params that are no files and no prompt, as in the model's example. */
function required(model: Model): Record<string, unknown> {
  const example = (model.example.input as { params: Record<string, unknown> }[] | undefined)?.[0]?.params ?? {};
  const names = ((model.params.required as string[] | undefined) ?? []).filter(
    (name) => name in example && slotsOf(model).every((slot) => slot.name !== name),
  );
  return Object.fromEntries(names.map((name) => [name, example[name]]));
}

function inputOf(model: Model, { takes }: Wish, input: Record<string, unknown>): Record<string, unknown> {
  const properties = (model.params.properties ?? {}) as object;
  if (takes === null) return Object.fromEntries(Object.entries(input).filter(([name]) => name in properties));
  const slots = slotsOf(model).filter((slot) => slot.kinds.includes(takes));
  const slot = slots.find((each) => each.roles.includes("first_frame")) ?? slots[0];
  if (!slot) return {};
  const isFrame = slot.roles.includes("first_frame");
  const file = isFrame ? { ...input, role: "first_frame" } : slot.roles[0] ? { ...input, role: slot.roles[0] } : input;
  return { [slot.name]: slot.isList ? [file] : file };
}
