"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  document.documentElement.classList.add("on");

  function make(tag, text, className) {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (className) element.className = className;
    return element;
  }

  // The table of workers: sorted by a click on a heading, searched, and a heat map by a click on a name.

  function openTable(table) {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const heads = [...table.tHead.rows[0].cells];

    function closeDetails() {
      for (const detail of body.querySelectorAll("tr.detail")) detail.remove();
      for (const button of body.querySelectorAll("[aria-expanded=true]")) button.setAttribute("aria-expanded", "false");
    }

    function sortBy(column) {
      const isNumber = heads[column].classList.contains("n");
      const before = heads[column].getAttribute("aria-sort");
      const down = before ? before === "ascending" : isNumber;
      const value = (row) => row.cells[column].dataset.value;
      const compare = (a, b) => (isNumber ? Number(a) - Number(b) : a.localeCompare(b, undefined, { numeric: true }));
      closeDetails();
      rows.sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x === "" || y === "") return (x === "") - (y === ""); // what is not known comes last
        return down ? compare(y, x) : compare(x, y);
      });
      for (const head of heads) head.removeAttribute("aria-sort");
      heads[column].setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...rows);
    }

    heads.forEach((head, column) => {
      const button = make("button", head.textContent);
      button.type = "button";
      button.addEventListener("click", () => sortBy(column));
      head.replaceChildren(button);
    });

    const allFound = byId("found").textContent;

    function search(words) {
      const wanted = words.trim().toLowerCase();
      closeDetails();
      let found = 0;
      for (const row of rows) {
        const text = [...row.cells].map((cell) => cell.dataset.value).join(" ").toLowerCase();
        row.hidden = !text.includes(wanted);
        found += !row.hidden;
      }
      byId("found").textContent = wanted ? `${found.toLocaleString("en")} found` : allFound;
    }
    byId("search").addEventListener("input", (event) => search(event.target.value));

    function drawHeat(name, counts) {
      const { classes, labels } = data.confusions;
      const heat = make("table", undefined, "heat");
      heat.append(make("caption", `How ${name} answers. Rows: fused labels. Columns: answers.`));
      const head = heat.createTHead().insertRow();
      head.append(make("td"));
      const columns = labels.map((label) => make("th", label));
      columns.push(make("th", "answers"));
      for (const cell of columns) {
        cell.scope = "col";
        head.append(cell);
      }
      const part = heat.createTBody();
      classes.forEach((klass, k) => {
        const total = counts[k].reduce((sum, count) => sum + count, 0);
        if (!total) return;
        const row = part.insertRow();
        const first = make("th", klass);
        first.scope = "row";
        row.append(first);
        for (const count of counts[k]) {
          const share = count / total;
          row.append(make("td", share < 0.005 ? "" : `${Math.round(100 * share)}%`, `h${Math.round(10 * share)}`));
        }
        const sum = make("th", Math.round(total).toLocaleString("en"));
        row.append(sum);
      });
      return heat;
    }

    function toggleHeat(row, button) {
      const isOpen = button.getAttribute("aria-expanded") === "true";
      closeDetails();
      if (isOpen) return;
      const detail = make("tr", undefined, "detail");
      const cell = make("td");
      cell.colSpan = heads.length;
      cell.append(drawHeat(button.textContent, data.confusions.counts[row.dataset.worker]));
      detail.append(cell);
      row.after(detail);
      button.setAttribute("aria-expanded", "true");
    }

    for (const row of rows) {
      if (!(row.dataset.worker in data.confusions.counts)) continue;
      const button = make("button", row.cells[0].textContent, "name");
      button.type = "button";
      button.setAttribute("aria-expanded", "false");
      button.addEventListener("click", () => toggleHeat(row, button));
      row.cells[0].replaceChildren(button);
    }
  }
  if (byId("worker-table")) openTable(byId("worker-table"));

  // On paper nothing can be unfolded.
  const folded = [...document.querySelectorAll("details.more")];
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = folded.filter((each) => !each.open);
    for (const each of opened) each.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const each of opened) each.open = false;
  });

  // The review: one item at a time. Labels are kept in the browser's storage, and downloaded as gold.csv.

  const cards = [...document.querySelectorAll("[data-review]")];
  if (!cards.length) return;
  const { columns, items, classes, known, id } = data.review;
  const key = `consilience review ${id}`;
  const MOST_BUTTONS = 12;
  let current = 0;
  let chosen = {};

  function restore() {
    try {
      const kept = JSON.parse(localStorage.getItem(key)) || {};
      for (const [number, label] of Object.entries(kept)) if (number in items && label in classes) chosen[number] = label;
    } catch {
      chosen = {};
    }
  }

  function keep() {
    try {
      localStorage.setItem(key, JSON.stringify(chosen));
    } catch {
      byId("done").title = "This browser does not keep your work: download it before you close the page.";
    }
  }

  function buildChoices(number) {
    const place = cards[number].querySelector(".choices");
    if (place.childElementCount) return;
    if (classes.length > MOST_BUTTONS) {
      const select = make("select");
      select.setAttribute("aria-label", "Label");
      select.append(new Option("Choose a label", ""), ...classes.map((name, k) => new Option(k < 9 ? `${k + 1}: ${name}` : name, String(k))));
      select.addEventListener("change", () => choose(number, select.value === "" ? null : Number(select.value), false));
      place.append(select);
      return;
    }
    classes.forEach((name, k) => {
      const button = make("button");
      button.type = "button";
      if (k < 9) button.append(make("kbd", String(k + 1)));
      button.append(make("bdi", name));
      button.addEventListener("click", () => choose(number, chosen[number] === k ? null : k, false));
      place.append(button);
    });
  }

  function show() {
    buildChoices(current);
    cards.forEach((card, number) => card.classList.toggle("current", number === current));
    const place = cards[current].querySelector(".choices");
    [...place.querySelectorAll("button")].forEach((button, k) => button.setAttribute("aria-pressed", String(chosen[current] === k)));
    const select = place.querySelector("select");
    if (select) select.value = current in chosen ? String(chosen[current]) : "";
    const n = Object.keys(chosen).length;
    byId("place").textContent = `${current + 1} of ${cards.length}`;
    byId("progress").value = n;
    byId("done").textContent = `${n} labelled`;
    byId("download").disabled = n === 0;
    byId("clear").disabled = n === 0;
    byId("start").textContent = n ? "Go on" : "Start";
    byId("start").classList.toggle("primary", n === 0);
    byId("download").classList.toggle("primary", n > 0);
  }

  function move(to) {
    current = Math.max(0, Math.min(cards.length - 1, to));
    show();
    cards[current].focus();
  }

  function choose(number, label, goOn) {
    if (label === null) delete chosen[number];
    else chosen[number] = label;
    keep();
    if (goOn) move(number + 1);
    else show();
  }

  function quote(text) {
    return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  function toCsv() {
    const lines = [[...columns, "label", "random"]];
    for (const row of known) lines.push([...row.slice(0, -2), classes[row.at(-2)], row.at(-1) ? "true" : "false"]);
    for (const number of Object.keys(chosen).map(Number).sort((a, b) => a - b)) {
      const item = items[number];
      lines.push([...item.slice(0, -1), classes[chosen[number]], item.at(-1) ? "true" : "false"]);
    }
    return lines.map((line) => line.map(quote).join(",")).join("\n") + "\n";
  }

  function download() {
    const link = make("a");
    link.href = URL.createObjectURL(new Blob([toCsv()], { type: "text/csv" }));
    link.download = "gold.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  byId("review").addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("select, input")) return;
    const number = Number(event.key);
    if (number >= 1 && number <= Math.min(9, classes.length)) choose(current, number - 1, true);
    else if (event.key === "ArrowRight") move(current + 1);
    else if (event.key === "ArrowLeft") move(current - 1);
    else if (event.key === "Backspace") choose(current, null, false);
    else return;
    event.preventDefault();
  });
  byId("start").addEventListener("click", () => {
    const open = cards.findIndex((_, number) => !(number in chosen));
    move(open < 0 ? 0 : open);
  });
  byId("back").addEventListener("click", () => move(current - 1));
  byId("next").addEventListener("click", () => move(current + 1));
  byId("download").addEventListener("click", download);
  byId("clear").addEventListener("click", () => {
    if (!confirm("Remove all labels that you gave here?")) return;
    chosen = {};
    keep();
    show();
  });
  restore();
  show();
})();
