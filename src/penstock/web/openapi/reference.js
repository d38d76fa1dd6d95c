document.querySelectorAll(".code button").forEach((button) => {
  button.addEventListener("click", async () => {
    const block = button.nextElementSibling;
    try {
      await navigator.clipboard.writeText(block.textContent);
    } catch {  // the clipboard is closed on plain http: select it instead
      getSelection().selectAllChildren(block);
      document.execCommand("copy");
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1200);
  });
});

const filter = document.getElementById("filter");
const articles = [...document.querySelectorAll("article")];
filter.addEventListener("input", () => {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  articles.forEach((article) => {
    const text = article.textContent.toLowerCase();
    article.hidden = !words.every((word) => text.includes(word));
    shown += !article.hidden;
    const item = document.querySelector(`nav [data-for="${article.id}"]`);
    if (item) item.hidden = article.hidden;
  });
  document.querySelectorAll("main section").forEach((section) => {
    const inside = [...section.querySelectorAll("article")];
    section.hidden = words.length > 0 && inside.every((article) => article.hidden);
  });
  document.getElementById("nothing").hidden = shown > 0;
});

const open = () => {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (target && target.hidden) { filter.value = ""; filter.dispatchEvent(new Event("input")); target.scrollIntoView(); }
};
addEventListener("hashchange", open);
