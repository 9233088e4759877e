// The page is complete without this: it only hides what the reader does not want to see.
"use strict";
const parts = document.querySelectorAll("article");
for (const part of parts.length ? parts : [document.body]) {
  for (const button of part.querySelectorAll("[data-toggle]")) {
    button.addEventListener("click", () => {
      const shown = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(shown));
      for (const drawn of part.querySelectorAll(`[data-series="${button.dataset.toggle}"]`)) {
        // Bars keep their rows: only what is drawn in them goes.
        if (drawn.closest(".bars")) drawn.style.opacity = shown ? "" : "0.15";
        else drawn.classList.toggle("off", !shown);
      }
    });
  }
  const choice = part.querySelector("[data-choice]");
  if (choice) {
    const show = () => {
      for (const point of part.querySelectorAll("[data-point]")) {
        point.hidden = choice.value !== "all" && point.dataset.point !== choice.value;
      }
    };
    choice.addEventListener("change", show);
    show();
  }
}
