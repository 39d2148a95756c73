(() => {
  const root = document.documentElement;
  try {
    const charts = JSON.parse(document.getElementById("charts").textContent);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const narrow = matchMedia("(max-width: 860px)");
    const paper = matchMedia("print");

    const draw = () => {
      const style = getComputedStyle(document.body);
      const color = (name) => style.getPropertyValue(`--${name}`).trim();
      // Paper is laid out as a narrow page whatever its size: pages are counted before they are drawn for the last time.
      const slim = narrow.matches || "paper" in root.dataset;
      const dressed = (chart) => {
        const { data, layout } = structuredClone(chart);
        for (const trace of data) {
          const tone = color(`tone-${trace.meta.tone}`);
          trace.marker = { ...trace.marker, color: tone };
          if (trace.type === "scatter") trace.line = { ...trace.line, color: tone };
        }
        layout.paper_bgcolor = layout.plot_bgcolor = "rgba(0,0,0,0)";
        layout.font = { family: style.fontFamily, size: 12.5, color: color("soft") };
        layout.legend.font = { color: color("ink") };
        layout.hoverlabel = { bgcolor: color("card"), bordercolor: color("line"), font: { color: color("ink") } };
        for (const axis of [layout.xaxis, layout.yaxis]) {
          Object.assign(axis, { gridcolor: color("grid"), zerolinecolor: color("line"), linecolor: color("line") });
        }
        if (slim && layout.xaxis.type === "date") {
          layout.xaxis.nticks = 5;
          if (layout.xaxis.dtick) layout.xaxis.dtick *= 2;
        }
        if (slim && chart.narrow) {
          Object.assign(layout, chart.narrow);
          if (layout.annotations) {
            layout.yaxis.showticklabels = false;
            layout.yaxis.range[1] -= 0.3;
          }
        }
        const frame = document.getElementById(chart.id);
        frame.style.minHeight = `${layout.height}px`;
        layout.width = frame.clientWidth;
        return [data, layout];
      };
      for (const chart of charts) {
        Plotly.react(chart.id, ...dressed(chart), { responsive: true, displayModeBar: false, showTips: false });
      }
    };
    draw();
    for (const condition of [dark, narrow, paper]) condition.addEventListener("change", draw);
    // A chart that is wider than the paper would have the browser print everything smaller. Browsers that tell of no
    // change to paper print what is drawn here.
    addEventListener("beforeprint", () => {
      root.dataset.paper = "";
      draw();
    });
    addEventListener("afterprint", () => {
      delete root.dataset.paper;
      draw();
    });
    root.dataset.charts = String(charts.length);
  } catch (error) {
    root.dataset.charts = "failed";
    for (const chart of document.querySelectorAll(".chart")) {
      chart.textContent = "This browser could not draw the chart; the table below has its numbers.";
      chart.removeAttribute("role");
    }
    for (const table of document.querySelectorAll("details")) table.open = true;
    console.error(error);
  }
})();
