/** The script of a public share page: times in the reader's zone, and the viewer of 3D models. The rest needs no script. */
import "../nonce";

for (const time of document.querySelectorAll("time")) {
  const moment = new Date(time.dateTime);
  if (!Number.isNaN(moment.getTime())) {
    time.textContent = moment.toLocaleString(undefined, { dateStyle: "long", timeStyle: "short" });
  }
}

const places = [...document.querySelectorAll<HTMLElement>("[data-model]")];
if (places.length > 0) {
  void import("../parts/viewer").then(
    () => places.forEach(show),
    () => undefined, // the preview stays, and the download works
  );
}

function show(place: HTMLElement): void {
  const viewer = document.createElement("model-viewer");
  const settings = {
    src: place.dataset.model ?? "",
    alt: "3D model, to be turned with the arrow keys",
    "camera-controls": "",
    "interaction-prompt": "none",
    "shadow-intensity": "0.6",
    "touch-action": "pan-y",
    "camera-orbit": "25deg 72deg auto",
    exposure: "1.05",
  };
  for (const [name, value] of Object.entries(settings)) viewer.setAttribute(name, value);
  viewer.addEventListener("load", () => {
    place.dataset.shown = "";
  });
  viewer.addEventListener("error", () => viewer.remove());
  place.append(viewer);
}
