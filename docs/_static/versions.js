// The list of versions below the table of contents. Published manuals lie side by side, one folder each, next to
// versions.json. Where there is none, as in a local build, the list stays hidden.
document.addEventListener("DOMContentLoaded", async () => {
  const label = document.querySelector(".versions");
  if (!label || !location.protocol.startsWith("http")) return;
  const root = new URL(document.documentElement.dataset.content_root, location.href);
  const site = new URL("../", root);
  const here = root.pathname.split("/").at(-2);
  const page = location.pathname.slice(root.pathname.length);
  const answer = await fetch(new URL("versions.json", site)).catch(() => null);
  if (!answer?.ok) return;
  const versions = await answer.json();
  if (!versions.some(({ name }) => name === here)) return;
  const select = label.querySelector("select");
  for (const { name, title } of versions) select.add(new Option(title, name, false, name === here));
  label.hidden = false;
  select.addEventListener("change", async () => {
    const same = new URL(`${select.value}/${page}`, site);
    const found = await fetch(same, { method: "HEAD" }).catch(() => null);
    location.href = found?.ok ? same : new URL(`${select.value}/`, site); // a page that this version does not have
  });
});
