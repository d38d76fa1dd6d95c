/** The picture that comes with the console, for a first 3D model. `tools/console/sample_picture.py` draws it. */
export const SAMPLE_PICTURE = "sample-vase.png";

export const SAMPLE_PATH = `/console/${SAMPLE_PICTURE}`;

export async function fetchSamplePicture(): Promise<File> {
  const answer = await fetch(SAMPLE_PATH);
  if (!answer.ok) throw new Error("The sample picture is missing: build the console again.");
  return new File([await answer.blob()], SAMPLE_PICTURE, { type: "image/png" });
}
