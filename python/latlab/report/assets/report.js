// Draws the charts that the page's data describe, and hands out their figures as CSV. No expression is ever compiled:
// Vega's interpreter walks their syntax trees, so the page's policy needs no exception.
(function () {
  "use strict";
  const island = JSON.parse(document.getElementById("latlab-data").textContent);
  const silent = { level: () => silent, error: show, warn: () => silent, info: () => silent, debug: () => silent };
  // Nothing may be fetched: every figure is in the page.
  const loader = vega.loader();
  loader.load = () => Promise.reject(new Error("this report loads nothing"));
  loader.sanitize = () => Promise.reject(new Error("this report links nothing"));

  function show(error) {
    console.error(error);
    return silent;
  }

  // What the page wrote once and column by column, as a specification again; a new one each time.
  function unpacked(node) {
    if (Array.isArray(node)) return node.map(unpacked);
    if (node === null || typeof node !== "object") return node;
    if ("$part" in node) return unpacked(island.parts[node.$part]);
    const whole = Object.entries(node).map(([key, value]) => [key, unpacked(value)]);
    if ("$runs" in node) return whole[0][1].flatMap(([value, times]) => Array(times).fill(value));
    if ("$columns" in node) return rows(Object.entries(whole[0][1]));
    return Object.fromEntries(whole);
  }

  function rows(columns) {
    return columns[0][1].map((_, row) => Object.fromEntries(columns.map(([key, column]) => [key, column[row]])));
  }

  function specFor(place) {
    const spec = unpacked(island.charts[place.dataset.chart].spec);
    spec.config = structuredClone(island.config);
    if (place.clientWidth < 480) {
      spec.config.axisY.labelLimit = 150;
      spec.config.legend.columns = 1;
      spec.config.legend.labelLimit = 130;
      // Panels side by side would be too small to read: one below the other each has the whole width.
      if (spec.hconcat) {
        spec.vconcat = spec.hconcat.map((panel) => ({ ...panel, width: place.clientWidth - 110 }));
        delete spec.hconcat;
      }
      if (spec.concat) {
        spec.columns = 1;
        for (const panel of spec.concat) panel.width = place.clientWidth - 110;
      }
    }
    if (spec.layer) {
      spec.width = Math.max(300, Math.min(960, place.clientWidth - 4));
      spec.autosize = { type: "fit-x", contains: "padding" };
    }
    return spec;
  }

  async function draw(place) {
    undrawn.delete(place);
    try {
      const compiled = vegaLite.compile(specFor(place), { logger: silent }).spec;
      const runtime = vega.parse(compiled, null, { ast: true });
      const expr = vegaInterpreter.expressionInterpreter;
      const view = new vega.View(runtime, { expr, loader, renderer: "svg", logger: silent, hover: false });
      if (place.latlabView) place.latlabView.finalize();
      place.replaceChildren();
      place.latlabView = view.initialize(place);
      await view.runAsync();
      place.dataset.drawn = place.clientWidth;
    } catch (error) {
      const text = document.createElement("p");
      text.className = "failed";
      text.textContent = "This chart could not be drawn here; its figures are in the table below.";
      place.replaceChildren(text);
      show(error);
    }
    place.style.minHeight = "";
  }

  // Nothing here waits for anything but promises that are kept already: whoever calls it from an event finds all of it drawn when the
  // browser goes on.
  async function drawAll(places) {
    for (const place of places) await draw(place);
    if (!awaited().length) document.documentElement.dataset.allDrawn = "";
  }

  function save(name) {
    const blob = new Blob(["\ufeff", island.charts[name].csv], { type: "text/csv;charset=utf-8" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = `latlab-${name}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  for (const button of document.querySelectorAll("button[data-csv]")) {
    button.hidden = false;
    button.addEventListener("click", () => save(button.dataset.csv));
  }

  // Charts are drawn when they come within a window of the reader, the others while the reader does nothing; what is folded, when it
  // is opened, and all of them before they are printed.
  const places = [...document.querySelectorAll("[data-chart]")];
  const undrawn = new Set(places);
  for (const place of places) {
    // Room for what will stand there, so that a link into the page does not miss its place.
    place.style.minHeight = `${(Number(island.charts[place.dataset.chart].spec.height) || 280) + 90}px`;
  }

  const awaited = () => [...undrawn].filter((place) => !place.closest("details:not([open])"));
  document.addEventListener("toggle", (event) => drawAll(awaited().filter((place) => event.target.contains(place))), true);

  // A link into a fold opens it.
  function reveal() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let fold = target?.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    if (target?.matches("details")) target.scrollIntoView();
  }
  window.addEventListener("hashchange", reveal);
  reveal();

  const idle = window.requestIdleCallback ?? ((then) => setTimeout(then, 50));
  function drawTheRest() {
    const [next] = awaited();
    if (next) idle(() => drawAll(undrawn.has(next) ? [next] : []).then(drawTheRest));
  }

  const start = performance.now();
  function begun() {
    if (document.documentElement.dataset.drawMs !== undefined) return;
    document.documentElement.dataset.drawMs = (performance.now() - start).toFixed(0);
    drawTheRest();
  }

  if ("IntersectionObserver" in window) {
    const nearing = new IntersectionObserver(
      (entries) => {
        const near = entries.filter((entry) => entry.isIntersecting && undrawn.has(entry.target));
        for (const entry of near) nearing.unobserve(entry.target);
        drawAll(near.map((entry) => entry.target)).then(begun);
      },
      { rootMargin: "100% 0px" },
    );
    for (const place of places) nearing.observe(place);
  } else {
    drawAll(places).then(begun);
  }

  let waiting = 0;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    // On paper the pictures scale; only a real change of the window is worth a new drawing.
    waiting = setTimeout(() => {
      if (!matchMedia("print").matches) {
        const drawn = places.filter((place) => !undrawn.has(place));
        drawAll(drawn.filter((place) => Math.abs(place.clientWidth - place.dataset.drawn) > 24));
      }
    }, 200);
  });

  // On paper nobody scrolls. Folds that belong there are opened for it, and closed again afterwards.
  window.addEventListener("beforeprint", () => {
    for (const fold of document.querySelectorAll("details:is(.topic, .method:not(.repeated)):not([open])")) {
      fold.dataset.openedToPrint = "";
      fold.open = true;
    }
    drawAll([...undrawn]);
  });
  matchMedia("print").addEventListener("change", (media) => {
    if (media.matches) drawAll([...undrawn]);
  });
  window.addEventListener("afterprint", () => {
    for (const fold of document.querySelectorAll("details[data-opened-to-print]")) {
      delete fold.dataset.openedToPrint;
      fold.open = false;
    }
  });
})();
