// Tables are sorted by a click on a heading, and searched by what is typed above them.
for (const table of document.querySelectorAll("table")) {
  const [head, ...rows] = table.rows;
  const search = document.createElement("input");
  search.type = "search";
  search.placeholder = "Search these rows";
  search.setAttribute("aria-label", search.placeholder);
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(words);
  });
  table.parentElement.before(search);
  const order = (row, place) => {
    const cell = row.cells[place];
    return cell.dataset.order === undefined ? cell.textContent.toLowerCase() : Number(cell.dataset.order);
  };
  const sort = (heading, place) => {
    const up = heading.ariaSort === "descending" ? 1 : -1;
    for (const other of head.cells) other.removeAttribute("aria-sort");
    heading.ariaSort = up > 0 ? "ascending" : "descending";
    rows.sort((one, other) => {
      const [first, second] = [order(one, place), order(other, place)];
      if (typeof first !== typeof second) return typeof first === "number" ? -1 : 1; // a cell without a figure is last
      return first < second ? -up : first > second ? up : 0;
    });
    table.tBodies[0].append(...rows);
  };
  [...head.cells].forEach((heading, place) => {
    heading.tabIndex = 0;
    heading.addEventListener("click", () => sort(heading, place));
    heading.addEventListener("keydown", (event) => event.key === "Enter" && sort(heading, place));
  });
}
