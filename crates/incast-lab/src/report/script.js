// The page is complete without this: it only hides what the reader does not want to see.
"use strict";
for (const button of document.querySelectorAll("[data-toggle]")) {
  button.addEventListener("click", () => {
    const shown = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(shown));
    for (const part of document.querySelectorAll(`[data-series="${button.dataset.toggle}"]`)) {
      // Bars keep their rows: only what is drawn in them goes.
      if (part.closest(".bars")) part.style.opacity = shown ? "" : "0.15";
      else part.classList.toggle("off", !shown);
    }
  });
}
const choice = document.getElementById("point");
if (choice) {
  const show = () => {
    for (const point of document.querySelectorAll("[data-point]")) {
      point.hidden = choice.value !== "all" && point.dataset.point !== choice.value;
    }
  };
  choice.addEventListener("change", show);
  show();
}
