// Browsers start no workers in pages that were opened as files. There, a frame plays the part, so that search works.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = this.onerror = this.onmessageerror = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => setTimeout(() => this.hand(this, data));
      this.ready = new Promise((resolve, reject) => {
        const script = inside.document.createElement("script");
        script.src = new URL(url, location.href).href;
        script.onload = resolve;
        script.onerror = reject;
        inside.document.body.append(script);
      });
      this.ready.catch(() => this.onerror?.(new Event("error")));
    }

    hand(target, data) {
      const message = new MessageEvent("message", { data: structuredClone(data) });
      if (target === this) this.onmessage?.(message);
      target.dispatchEvent(message);
    }

    postMessage(data) {
      this.ready.then(() => this.hand(this.frame.contentWindow, data), () => {});
    }

    terminate() {
      this.frame.remove();
    }
  };
}
