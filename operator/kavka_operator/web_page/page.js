const by = id => document.getElementById(id);

function make(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
  for (const child of children) if (child !== null && child !== "") made.append(child);
  return made;
}

const MARKS = {good: "\u2713 ", warn: "\u25cb ", bad: "\u2717 ", dim: "\u2013 "};

function mark(word, tone) {
  return make("span", {class: "mark " + tone}, MARKS[tone] + word);
}

function many(count, noun) { return count + " " + noun + (count === 1 ? "" : "s"); }

function numbers(pairs) {
  const list = make("dl", {class: "numbers"});
  for (const [name, value, tone] of pairs) {
    list.append(make("div", {}, make("dt", {}, name), make("dd", tone ? {class: tone} : {}, String(value))));
  }
  return list;
}

function say(words, tone) {
  const state = by("state");
  if (state.textContent !== words) { state.textContent = words; state.className = tone; }
}

const PAGE_ROWS = 50, RETRY_MS = 2000, LATE_MS = 15000, TABLES_MAX = 200;
const TITLES = [["topics", "Topics"], ["records", "Records"], ["groups", "Groups"], ["shares", "Share groups"], ["clients", "Clients"], ["quotas", "Quotas"],
  ["nodes", "Nodes"], ["transactions", "Transactions"], ["access", "Users & ACLs"], ["roll", "Roll"], ["audit", "Audit"]];
/** What this console has: names of views, of those that are asked for by themselves and are not live, of those whose items have more. */
const told = name => new Set(document.body.dataset[name].split(" "));
const VIEWS = TITLES.filter(([view]) => told("views").has(view)), ASKED = told("asked"), PANELS = told("panels");
/** How a visitor is let in: by a token for all places, or for the guarded ones alone, which each take a right of their own. */
const LOGIN = document.body.dataset.login, GUARDED = told("guarded");
const STATE_MS = 1000, STATES_MAX = 60;
const ENDED = {
  count: "as many as were asked for", end: "there are no more",
  scanned: "the search has ended at its bound of records, and there may be more",
  bytes: "the search has ended at its bound of bytes, and there may be more",
  seconds: "the search has ended at its bound of time, and there may be more",
};
let place = null, stream = null, bearer = "", parts = new Map(), pending = null, isPaused = false, lastAt = 0, panel = null;
const orders = new Map();

function svg(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function hash(...names) { return "#/" + names.map(encodeURIComponent).join("/"); }

function placeOf(text) {
  let names = [""];
  try { names = text.replace(/^#\/?/, "").split("/").map(decodeURIComponent); } catch { /* it names no place */ }
  if (!names[0]) return {cluster: null, view: "clusters", item: null};
  const view = names[1] || "topics";
  const rest = names.slice(2);
  return {cluster: names[0], view, item: rest.length ? rest.join("\0") : null};
}

function query(fields) {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) if (value !== null) found.set(name, value);
  return found.toString();
}

function clock(at) { return at ? new Date(at).toLocaleTimeString() : "never"; }

function moment(ms) {
  if (ms < 0) return "no time";
  const at = new Date(ms), two = number => String(number).padStart(2, "0");
  return at.getFullYear() + "-" + two(at.getMonth() + 1) + "-" + two(at.getDate()) + " " + two(at.getHours()) + ":" +
    two(at.getMinutes()) + ":" + two(at.getSeconds()) + "." + String(at.getMilliseconds()).padStart(3, "0");
}

/** The API server does not let this visitor see the place, or does not know the token. */
class RefusedError extends Error {}

/** Ask the console, with the token where there is one; returns the answer, unless it is an error. */
async function request(address, options) {
  const answer = await fetch(address, {cache: "no-store", headers: bearer ? {Authorization: "Bearer " + bearer} : {}, ...options});
  if (answer.ok) return answer;
  const words = (await answer.text()).trim();
  if (LOGIN && (answer.status === 401 || (answer.status === 403 && (GUARDED.has(place.view) || LOGIN === "token")))) {
    throw Object.assign(new RefusedError(words), {status: answer.status});
  }
  throw new Error(words);
}

/* Tables. */

function fill(cell, column, shown) {
  cell.className = (column.isNumber ? "number " : "") + (shown.text === "" ? "blank" : "");
  const tone = {good: "good", warn: "warn", bad: "bad", dim: "dim"}[shown.tone] || "";
  if (shown.trend) {
    const drawn = svg("svg", {class: "trend", viewBox: "0 0 96 16", preserveAspectRatio: "none", "aria-hidden": "true"});
    shown.trend.forEach((height, at) =>
      drawn.append(svg("rect", {x: at * 6, y: 14 - height * 2, width: 5, height: height * 2 + 2})));
    return cell.replaceChildren(drawn);
  }
  if (shown.share !== undefined) {
    const full = make("b", {});
    full.style.width = Math.round(shown.share * 100) + "%";
    return cell.replaceChildren(make("span", {class: "share " + tone}, make("i", {"aria-hidden": "true"}, full), make("span", {}, shown.text)));
  }
  if (shown.text && ["good", "warn", "bad"].includes(tone) && !column.isNumber) return cell.replaceChildren(mark(shown.text, tone));
  cell.replaceChildren(tone ? make("span", {class: tone}, shown.text) : shown.text);
}

function isMatch(row, words) {
  return words.every(word => word.length > 1 && word[0] === "!"
    ? !row.cells.some(cell => cell.text.toLowerCase().includes(word.slice(1)))
    : row.cells.some(cell => cell.text.toLowerCase().includes(word)));
}

function compare(one, other) { return one < other ? -1 : one > other ? 1 : 0; }

class Sheet {
  constructor(name) {
    this.key = [place.view, place.item === null ? "" : "item", name].join("/");
    this.order = orders.get(this.key) || {column: null, isReversed: false, filter: "", page: 0};
    if (orders.size < TABLES_MAX) orders.set(this.key, this.order);
    this.lines = new Map();
    const id = "filter-" + name;
    this.title = make("h3", {id: "title-" + name});
    this.count = make("span", {class: "count"});
    this.filter = make("input", {type: "search", id, placeholder: "Filter", "aria-label": "Filter the table", autocomplete: "off"});
    this.filter.value = this.order.filter;
    this.sorts = make("select", {id: "sort-" + name, "aria-label": "Sort by"});
    this.head = make("tr", {role: "row"});
    this.body = make("tbody", {role: "rowgroup"});
    this.table = make("table", {role: "table", "aria-labelledby": "title-" + name},
      make("thead", {role: "rowgroup"}, this.head), this.body);
    this.empty = make("p", {class: "empty"});
    this.note = make("p", {class: "note"});
    this.before = make("button", {type: "button"}, "Previous");
    this.behind = make("button", {type: "button"}, "Next");
    this.pages = make("span", {class: "dim"});
    this.pager = make("div", {class: "pager"}, this.before, this.behind, this.pages);
    this.section = make("section", {class: "sheet", "aria-labelledby": "title-" + name},
      make("div", {class: "bar"}, this.title, this.count, make("span", {class: "sort"}, this.sorts),
        make("label", {class: "filter"}, this.filter)),
      make("div", {class: "scroll"}, this.table), this.empty, this.note, this.pager);
    this.filter.addEventListener("input", () => { this.order.filter = this.filter.value; this.order.page = 0; this.draw(); });
    this.sorts.addEventListener("change", () => this.sortBy(Number(this.sorts.value), true));
    this.before.addEventListener("click", () => this.turn(-1));
    this.behind.addEventListener("click", () => this.turn(1));
  }

  show(sheet) {
    const heads = JSON.stringify(sheet.columns);
    const isNew = heads !== this.heads;
    this.heads = heads;
    this.sheet = sheet;
    if (this.order.column === null) this.order.column = sheet.sort;
    if (isNew) this.drawHead();
    this.draw();
  }

  sortBy(column, isChosen) {
    if (this.order.column === column && !isChosen) this.order.isReversed = !this.order.isReversed;
    else { this.order.column = column; this.order.isReversed = false; }
    this.order.page = 0;
    this.drawHead();
    this.draw();
  }

  turn(pages) {
    this.order.page += pages;
    this.draw();
    this.section.scrollIntoView({block: "nearest"});
  }

  drawHead() {
    const focused = document.activeElement && document.activeElement.id;
    this.lines.clear();
    this.body.replaceChildren();
    this.title.textContent = this.sheet.title;
    this.sorts.replaceChildren();
    this.head.replaceChildren(...this.sheet.columns.map((column, at) => {
      const head = make("th", {scope: "col", role: "columnheader", class: column.isNumber ? "number" : ""});
      if (!column.isSorting) { head.append(column.title); return head; }
      this.sorts.append(make("option", {value: at}, "Sort by " + column.title.toLowerCase()));
      if (at === this.order.column) {
        head.setAttribute("aria-sort", column.isDescending !== this.order.isReversed ? "descending" : "ascending");
      }
      const button = make("button", {type: "button", id: "head-" + this.sheet.name + "-" + at}, column.title);
      button.addEventListener("click", () => this.sortBy(at, false));
      head.append(button);
      return head;
    }));
    this.sorts.value = String(this.order.column);
    if (focused && by(focused)) by(focused).focus({preventScroll: true});
  }

  chosen() {
    const at = this.order.column, words = this.order.filter.toLowerCase().split(/\s+/).filter(Boolean);
    const isDown = this.sheet.columns[at].isDescending !== this.order.isReversed;
    const rows = this.sheet.rows.filter(row => isMatch(row, words));
    const known = rows.filter(row => row.cells[at].order !== null);
    known.sort((one, other) => (isDown ? -1 : 1) * compare(one.cells[at].order, other.cells[at].order));
    return known.concat(rows.filter(row => row.cells[at].order === null));
  }

  draw() {
    const rows = this.chosen(), pages = Math.max(1, Math.ceil(rows.length / PAGE_ROWS));
    this.order.page = Math.min(Math.max(0, this.order.page), pages - 1);
    const first = this.order.page * PAGE_ROWS, shown = rows.slice(first, first + PAGE_ROWS);
    const total = this.sheet.rows.length + this.sheet.omitted;
    this.count.textContent = rows.length === total ? String(total) : rows.length + " of " + total;
    this.filter.parentElement.hidden = total < 2 && !this.order.filter;
    this.sorts.hidden = total < 2 || !this.sorts.options.length;
    this.table.hidden = !shown.length;
    this.empty.hidden = shown.length > 0;
    this.empty.textContent = total ? "No row has these words." : this.sheet.note ? "" : "There are none.";
    this.note.textContent = [this.sheet.note, this.sheet.omitted ? this.sheet.omitted + " more rows are not sent." : ""]
      .filter(Boolean).join(" ");
    this.pager.hidden = pages < 2;
    this.before.disabled = this.order.page === 0;
    this.behind.disabled = this.order.page === pages - 1;
    this.pages.textContent = (first + 1) + " to " + (first + shown.length) + " of " + rows.length;
    this.place(shown);
  }

  /** Put the rows in this order; what has not changed stays, with its focus. */
  place(rows) {
    const focused = document.activeElement && this.body.contains(document.activeElement) ? document.activeElement.id : "";
    const keys = new Set(rows.map(row => row.key));
    for (const [key, line] of this.lines) if (!keys.has(key)) { line.remove(); this.lines.delete(key); }
    rows.forEach((row, at) => {
      let line = this.lines.get(row.key);
      if (!line) {
        line = make("tr", {role: "row"}, ...this.sheet.columns.map(column => make("td", {role: "cell", "data-label": column.title})));
        line.shown = [];
        this.lines.set(row.key, line);
      }
      row.cells.forEach((cell, column) => {
        const text = JSON.stringify(cell) + (column ? "" : JSON.stringify(row.link || null));
        if (line.shown[column] === text) return;
        line.shown[column] = text;
        fill(line.cells[column], this.sheet.columns[column], cell);
        if (column === this.linked() && row.link) this.link(line.cells[column], row, cell);
      });
      if (this.body.children[at] !== line) this.body.insertBefore(line, this.body.children[at] || null);
    });
    if (focused && by(focused) && document.activeElement !== by(focused)) by(focused).focus({preventScroll: true});
  }

  /** The column whose cells lead on: that of the client id, where there is one, otherwise the first. */
  linked() { return this.sheet.name === "clients" ? 1 : 0; }

  link(cell, row, shown) {
    const id = "row-" + this.sheet.name + "-" + row.key;
    cell.replaceChildren(make("a", {id, href: hash(...row.link)}, shown.text || "(empty)"));
  }
}

/* Records of a topic. */

function decoded(value, size) {
  if (value === null) return {text: "null", isNull: true};
  if (typeof value !== "string") return {text: "binary, " + many(size, "byte") + ": " + value.base64, isBinary: true};
  const text = value.trim();
  if (text.startsWith("{") || text.startsWith("[")) {
    try { return {text: value, pretty: JSON.stringify(JSON.parse(text), null, 2)}; } catch { /* it is no JSON */ }
  }
  return {text: value};
}

function line(value, size, name) {
  const found = decoded(value, size);
  const words = found.text.length > 300 ? found.text.slice(0, 300) : found.text;
  return make("span", {class: name + " mono" + (found.isNull || found.isBinary ? " dim" : "")}, words.replace(/\s+/g, " "));
}

function recordOf(record) {
  const body = make("div", {class: "body"});
  const details = make("details", {},
    make("summary", {}, make("span", {class: "when"}, moment(record.timestamp)),
      make("span", {class: "where"}, record.partition + " : " + record.offset),
      line(record.key, record.keyBytes, "key"), line(record.value, record.valueBytes, "value")), body);
  details.addEventListener("toggle", () => {
    if (!details.open || body.children.length) return;
    const key = decoded(record.key, record.keyBytes), value = decoded(record.value, record.valueBytes);
    body.append(
      make("p", {class: "dim"}, "partition " + record.partition + ", offset " + record.offset + ", key of " +
        many(record.keyBytes || 0, "byte") + ", value of " + many(record.valueBytes || 0, "byte")),
      ...record.problems.map(words => make("p", {class: "warn"}, "Not decoded: " + words)),
      make("h4", {}, record.keySchema && key.pretty ? "Key, decoded by schema " + record.keySchema : "Key"), make("pre", {}, key.pretty || key.text),
      make("h4", {}, value.pretty ? "Value, decoded " + (record.valueSchema ? "by schema " + record.valueSchema : "as JSON") : "Value"),
      make("pre", {}, value.pretty || value.text));
    if (record.isCut) body.append(make("p", {class: "warn"}, "Too long to show as a whole; kavka consume prints all of it."));
    if (record.headers.length) {
      body.append(make("h4", {}, "Headers"), make("pre", {}, record.headers.map(([name, held]) =>
        name + ": " + (held === null ? "null" : typeof held === "string" ? held : "base64 " + held.base64)).join("\n")));
      if (record.headersOmitted) body.append(make("p", {class: "dim"}, "and " + many(record.headersOmitted, "header") + " more"));
    }
  });
  return make("li", {}, details);
}

function field(words, input) { return make("label", {}, words, input); }

class Records {
  constructor() {
    this.partition = make("select", {id: "records-partition"}, make("option", {value: ""}, "all"));
    this.at = make("select", {id: "records-at"}, make("option", {value: "newest"}, "the newest"),
      make("option", {value: "oldest"}, "the oldest"), make("option", {value: "time"}, "from a time"),
      make("option", {value: "offset"}, "from an offset"));
    this.where = make("input", {id: "records-where", placeholder: "-5m", autocomplete: "off"});
    this.whereLabel = field("Which", this.where);
    this.keyed = make("input", {id: "records-key", autocomplete: "off"});
    this.valued = make("input", {id: "records-value", autocomplete: "off"});
    this.many = make("input", {id: "records-count", type: "number", min: "1", max: "200", value: "50"});
    this.follow = make("input", {id: "records-follow", type: "checkbox"});
    this.read = make("button", {type: "submit"}, "Read");
    this.said = make("p", {class: "note", id: "records-said", role: "status"});
    this.list = make("ol", {class: "records", id: "records-list", "aria-label": "Records"});
    this.followLine = make("label", {class: "line"}, this.follow, "Follow");
    this.form = make("form", {class: "query"}, field("Records", this.at), this.whereLabel, field("Partition", this.partition),
      field("Key contains", this.keyed), field("Value contains", this.valued), field("At most", this.many),
      this.followLine, this.read);
    this.section = make("section", {class: "sheet", "aria-labelledby": "title-records"},
      make("div", {class: "bar"}, make("h3", {id: "title-records"}, "Records")), this.form, this.said, this.list);
    this.form.addEventListener("submit", event => { event.preventDefault(); this.ask(); });
    this.at.addEventListener("change", () => this.turn());
    this.known = "";
    this.turn();
  }

  turn() {
    const at = this.at.value;
    this.whereLabel.hidden = at === "newest" || at === "oldest";
    this.where.placeholder = at === "offset" ? "120" : "-5m or 2026-11-28T19:00";
    this.followLine.hidden = at !== "newest";
  }

  /** Called with each look at the topic. */
  show(shown) {
    const known = JSON.stringify(shown.partitions);
    if (known !== this.known) {
      this.known = known;
      const chosen = this.partition.value;
      this.partition.replaceChildren(make("option", {value: ""}, "all"), ...shown.partitions.map(number => make("option", {value: number}, String(number))));
      this.partition.value = chosen;
    }
    const isMore = shown.end === null || shown.end !== this.end;
    const isFirst = this.end === undefined;
    this.end = shown.end;
    if (isFirst || (isMore && this.follow.checked && this.at.value === "newest")) this.ask();
  }

  async ask() {
    if (this.isAsking) return;
    this.isAsking = true;
    this.read.disabled = true;
    const at = this.at.value;
    try {
      const answer = await request("records?" + query({cluster: place.cluster, topic: place.item, at,
        where: this.whereLabel.hidden ? "" : this.where.value, partition: this.partition.value, key: this.keyed.value,
        value: this.valued.value, count: this.many.value}));
      this.fill(await answer.json());
    } catch (error) {
      this.said.className = "bad";
      this.said.textContent = error.message;
    } finally {
      this.isAsking = false;
      this.read.disabled = false;
    }
  }

  fill(found) {
    this.said.className = "note";
    this.said.textContent = found.records.length + " of " + many(found.scanned, "record") + " looked at; " +
      ENDED[found.ended] + ". Read at " + clock(Date.now()) + ".";
    const open = new Set([...this.list.querySelectorAll("details[open]")].map(item => item.parentElement.dataset.at));
    this.list.replaceChildren(...found.records.map(record => {
      const item = recordOf(record);
      item.dataset.at = record.partition + ":" + record.offset;
      if (open.has(item.dataset.at)) item.firstChild.open = true;
      return item;
    }));
  }
}

/* Why a client has its limits. */

class Explanation {
  constructor() {
    this.text = make("pre", {class: "text", id: "explanation", tabindex: "0", role: "region", "aria-label": "Explanation"});
    this.again = make("button", {type: "button"}, "Ask again");
    this.again.addEventListener("click", () => this.ask());
    this.section = make("section", {class: "sheet", "aria-labelledby": "title-explanation"},
      make("div", {class: "bar"}, make("h3", {id: "title-explanation"}, "Which quotas apply, and why"),
        make("span", {class: "count"}), this.again), this.text);
    this.ask();
  }

  show() { /* It is asked for by itself. */ }

  async ask() {
    const [user, client] = place.item.split("\0");
    try {
      const answer = await fetch("explain?" + query({cluster: place.cluster, user, client}));
      this.text.textContent = answer.ok ? (await answer.json()).text : await answer.text();
    } catch (error) {
      this.text.textContent = error.message;
    }
  }
}

/* The use of a quota over time. */

const WIDE = 600, HIGH = 110;

function percent(part) { return part === null ? "unknown" : Math.round(part * 100) + " %"; }

/** The points of a line, with a gap where nothing was told. */
function path(points, x, y) {
  let found = "", isOn = false;
  for (const [at, value] of points) {
    if (value === null) { isOn = false; continue; }
    found += (isOn ? "L" : "M") + x(at).toFixed(1) + " " + y(value).toFixed(1);
    isOn = true;
  }
  return found;
}

function chartOf(series) {
  const points = series.points, used = points.map(point => point[1]).filter(value => value !== null);
  const title = series.key.replace(/^kavka_/, "").replaceAll("_", " ") + ", of " + series.limit;
  if (!used.length) return make("figure", {}, make("figcaption", {}, title), make("p", {class: "note"}, "Use over time is unknown: no metrics page tells it."));
  const from = points[0][0], until = points[points.length - 1][0], top = Math.max(1.05, ...used) * 1.05;
  const x = at => until === from ? WIDE : (at - from) / (until - from) * WIDE, y = value => HIGH - value / top * HIGH;
  const words = "From " + clock(from) + " to " + clock(until) + ": now " + percent(points[points.length - 1][1]) + ", at most " +
    percent(Math.max(...used)) + ", at least " + percent(Math.min(...used)) + " of the limit.";
  const drawn = svg("svg", {class: "chart", viewBox: "0 0 " + WIDE + " " + HIGH, preserveAspectRatio: "none", role: "img", "aria-label": title + ". " + words});
  drawn.append(svg("path", {class: "limit", d: "M0 " + y(1) + "L" + WIDE + " " + y(1)}),
    svg("path", {class: "held", d: path(points.map(point => [point[0], point[2]]), x, value => HIGH - Math.min(1, value) * HIGH)}),
    svg("path", {class: "used", d: path(points, x, y)}));
  return make("figure", {}, make("figcaption", {}, title), drawn,
    make("p", {class: "note"}, words + " Dashed: the limit. Dotted: the share of the time for which clients were held back."));
}

/* The resource of a quota. */

class QuotaEditor {
  constructor() {
    this.charts = make("div", {class: "charts", id: "charts"});
    this.text = make("textarea", {id: "quota-text", rows: "18", spellcheck: "false", autocomplete: "off", "aria-describedby": "quota-said"});
    this.said = make("p", {class: "note", id: "quota-said", role: "status"}, "Asking for the resource\u2026");
    this.look = make("button", {type: "submit", id: "quota-look"}, "Show the difference");
    this.apply = make("button", {type: "button", id: "quota-apply"}, "Apply this difference");
    this.remove = make("button", {type: "button", id: "quota-delete"}, "Show its deletion");
    this.result = make("div", {id: "quota-result"});
    this.buttons = make("div", {class: "pager"}, this.look, this.apply, this.remove);
    this.form = make("form", {}, make("label", {for: "quota-text"}, "ClientQuota as YAML"), this.text, this.buttons);
    const resource = make("section", {class: "sheet", "aria-labelledby": "title-quota"},
      make("div", {class: "bar"}, make("h3", {id: "title-quota"}, "Resource")), this.said, this.form, this.result);
    const usage = make("section", {class: "sheet", "aria-labelledby": "title-usage"},
      make("div", {class: "bar"}, make("h3", {id: "title-usage"}, "Use over time, since the console watches")), this.charts);
    this.usage = usage;
    this.section = make("div", {}, usage, resource);
    this.form.addEventListener("submit", event => { event.preventDefault(); this.compare(); });
    this.apply.addEventListener("click", () => this.change());
    this.remove.addEventListener("click", () => this.compareDeletion());
    this.text.addEventListener("input", () => this.forget());
    this.form.hidden = this.usage.hidden = true;
    this.token = sessionStorage.getItem("token");
    this.keep(null);
    this.forget();
  }

  show(shown) {
    if (!this.isAsked) { this.isAsked = true; this.ask(); }  // the console knows the entity once it has looked
    const series = shown.series || [], drawn = JSON.stringify(series);
    this.usage.hidden = place.item === "new";
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.charts.replaceChildren(...(series.length ? series.map(chartOf)
      : [make("p", {class: "note"}, "Not known: Kafka's API does not tell it, and no metrics page has told of this quota.")]));
  }

  /** Keep the name of the resource that is stored: it can be deleted. */
  keep(name) {
    this.name = name;
    this.remove.hidden = !name;
  }

  tell(words, tone) { this.said.textContent = words; this.said.className = tone || "note"; }

  /** A text that was changed has no difference that was shown. */
  forget() {
    this.asked = null;  // the change whose difference is shown
    this.apply.disabled = true;
    this.apply.textContent = "Apply this difference";
    this.result.replaceChildren();
  }

  async ask() {
    const mine = place;
    try {
      const answer = await fetch("quota?" + query({cluster: mine.cluster, entity: mine.item}));
      if (!answer.ok) throw new Error(await answer.text());
      const found = await answer.json();
      if (mine !== place) return;
      this.form.hidden = !found.text;
      this.text.value = found.text;
      this.text.rows = Math.min(30, found.text.split("\n").length + 1);
      const isEditable = found.isWritable && this.token;
      this.keep(found.name);
      this.text.readOnly = !isEditable;
      this.buttons.hidden = !isEditable;
      if (found.isWritable && !this.token) found.why = "This tab only reads: to edit, open the address that kavka has printed, with its key.";
      const state = found.state ? " " + found.name + " is " + found.state.ready + (found.state.message ? ": " + found.state.message : ".") : "";
      this.tell([found.note, found.why].filter(Boolean).join(" ") + state);
    } catch (error) {
      if (mine === place) this.tell(error.message, "bad");
    }
  }

  async post(where, text, sum) {
    const answer = await fetch(where + "?" + query({cluster: place.cluster}), {method: "POST",
      headers: {"Content-Type": "application/json", "X-Kavka-Token": this.token}, body: JSON.stringify({text, sum})});
    if (!answer.ok) throw new Error(await answer.text());
    return answer.json();
  }

  compare() { return this.showDifference("quota/difference", "quota/apply", this.text.value); }

  compareDeletion() { return this.showDifference("quota/deletion", "quota/delete", this.name); }

  /** Show the difference that a request would make; `text` is what it says. */
  async showDifference(where, request, text) {
    if (!this.token) return;
    this.forget();
    const written = this.text.value;
    try {
      const found = await this.post(where, text, "");
      if (written !== this.text.value) return;
      if (found.change === "unchanged") return this.tell("There is no difference: " + found.name + " is so already.");
      this.tell(found.name + " would be " + found.change + ".");
      const lines = found.lines.map(line => make("span", {class: line.startsWith("+") ? "plus" : line.startsWith("-") ? "minus" : ""}, line + "\n"));
      this.result.append(make("h4", {}, "Difference"), make("pre", {class: "diff", id: "quota-diff", tabindex: "0", role: "region", "aria-label": "Difference"}, ...lines));
      const list = make("ul", {});
      for (const words of found.actions) list.append(make("li", {}, words));
      for (const words of found.obstacles) list.append(make("li", {class: "bad"}, words));
      if (list.children.length) this.result.append(make("h4", {}, "What the operator would do"), list);
      this.asked = {request, text, sum: found.sum};
      if (found.change === "deleted") this.apply.textContent = "Delete it";
      this.apply.disabled = false;
    } catch (error) { this.refuse(error); }
  }

  refuse(error) {
    this.tell("Nothing was applied.", "bad");
    this.result.replaceChildren(make("pre", {class: "text bad", tabindex: "0", role: "region", "aria-label": "Errors"}, error.message));
  }

  async change() {
    if (!this.token || !this.asked) return;
    const asked = this.asked, mine = place;
    this.apply.disabled = true;
    try {
      const found = await this.post(asked.request, asked.text, asked.sum);
      this.forget();
      this.keep(found.change === "deleted" ? null : found.name);
      this.tell(found.name + " " + found.change + "; the operator follows.");
      await this.follow(found.name, mine);
    } catch (error) { this.refuse(error); }
  }

  /** Say what the operator makes of it, until it has looked. */
  async follow(name, mine) {
    for (let times = 0; times < STATES_MAX && mine === place; times += 1) {
      const answer = await fetch("quota/state?" + query({cluster: mine.cluster, name}));
      if (!answer.ok) throw new Error(await answer.text());
      const found = await answer.json();
      if (mine !== place) return;
      const words = name + " is " + found.ready + (found.message ? ": " + found.message : ".");
      this.tell(words, found.isCurrent ? found.ready === "Ready" ? "good" : "bad" : "note");
      if (found.isCurrent || found.isStopped || found.ready === "gone") return;
      await new Promise(wake => setTimeout(wake, STATE_MS));
    }
  }
}

/* Places. */

function drawPlace() {
  const crumbs = [make("a", {href: "#/"}, "Clusters")];
  if (place.cluster !== null) crumbs.push(make("a", {href: hash(place.cluster, "topics")}, place.cluster));
  if (place.item !== null) {
    const words = place.view === "clients" ? place.item.split("\0").map(name => name || "any").join(" / ") : place.item;
    crumbs.push(make("a", {href: hash(place.cluster, place.view)}, place.view), make("span", {}, words));
  }
  by("crumbs").replaceChildren(...crumbs.flatMap((crumb, at) => at ? [make("span", {class: "dim", "aria-hidden": "true"}, "/"), crumb] : [crumb]));
  by("tabs").hidden = place.cluster === null;
  by("tabs").replaceChildren(...VIEWS.map(([view, title]) => {
    const link = make("a", {href: hash(place.cluster || "", view)}, title);
    if (view === place.view) link.setAttribute("aria-current", "page");
    return link;
  }));
  const current = by("tabs").querySelector("[aria-current]");
  if (current) by("tabs").scrollLeft = current.offsetLeft - by("tabs").offsetLeft - 16;
  const title = place.cluster === null ? "Clusters" : place.item !== null ? place.item.split("\0").filter(Boolean).join(" / ") || "any client"
    : VIEWS.find(([view]) => view === place.view)?.[1] || place.view;
  document.title = (place.cluster === null ? "" : title + " \u00b7 " + place.cluster + " \u00b7 ") + "Kavka";
  parts = new Map();
  panel = place.item === null || !PANELS.has(place.view) ? null : ["topics", "records"].includes(place.view) ? new Records() : place.view === "clients" ? new Explanation()
    : place.view === "quotas" ? new QuotaEditor() : null;
  by("main").replaceChildren(make("h2", {id: "title", tabindex: "-1", class: place.item === null ? "unseen" : ""}, title), make("div", {class: "facts", id: "facts"}),
    make("div", {id: "sheets"}, make("p", {class: "empty"}, "Asking the cluster\u2026")), make("div", {id: "untold", class: "note"}));
  if (place.cluster !== null && place.view === "quotas" && place.item === null && PANELS.has("quotas")) {
    by("sheets").after(make("p", {}, make("a", {id: "new-quota", href: hash(place.cluster, "quotas", "new")}, "A new quota")));
  }
  if (panel) by("sheets")[panel instanceof Records ? "before" : "after"](panel.section);
}

function draw(shown) {
  if (shown.isGone) {
    parts = new Map();
    by("sheets").replaceChildren(make("p", {class: "empty"}, "The cluster has none of this name."));
    return;
  }
  if (shown.isAwaited) return;
  const facts = JSON.stringify(shown.facts);
  if (facts !== by("facts").dataset.shown) {
    by("facts").dataset.shown = facts;
    by("facts").replaceChildren(...(shown.facts.length ? [numbers(shown.facts.map(fact => [fact.name, fact.text, fact.tone]))] : []));
  }
  if (!parts.size) by("sheets").replaceChildren();
  for (const sheet of shown.sheets) {
    if (!parts.has(sheet.name)) {
      parts.set(sheet.name, new Sheet(sheet.name));
      by("sheets").append(parts.get(sheet.name).section);
    }
    parts.get(sheet.name).show(sheet);
  }
  by("untold").textContent = (shown.untold || []).length ? "Not known: " + shown.untold.join("; ") : "";
  drawProgress(shown.roll);
  if (panel) panel.show(shown);
}

function drawProgress(roll) {
  if (!roll) { if (by("roll-progress")) by("roll-progress").remove(); return; }
  if (!by("roll-progress")) by("facts").after(make("progress", {id: "roll-progress", "aria-label": "Nodes restarted"}));
  by("roll-progress").max = roll.total;
  by("roll-progress").value = roll.done;
}

function take(shown) {
  if (shown.trouble) say("does not answer: " + shown.trouble + (lastAt ? " Shown is what was at " + clock(lastAt) + "." : ""), "bad");
  else if (shown.isAwaited) say("asking the cluster", "dim");
  else if (isPaused) say("paused at " + clock(lastAt), "warn");
  else if (shown.notice) say(shown.notice, "warn");
  else { lastAt = Date.now(); say("live", "dim live"); }
  if (isPaused) pending = shown;
  else draw(shown);
}

/** Show what the console sends of this place, until another one is shown. EventSource would send no token. */
async function listen() {
  stop();
  if (ASKED.has(place.view) || document.hidden || !by("login").hidden) return;
  const mine = stream = new AbortController();
  const address = "events?" + query({cluster: place.cluster, view: place.view, item: place.item});
  for (;;) {
    try {
      await follow(address, mine);
    } catch (error) {
      if (mine !== stream) return;
      if (error instanceof RefusedError) return refuse(error);
      say("The console does not answer: " + error.message.trim() + ". Shown is what was at " + clock(lastAt) + ".", "bad");
    }
    await new Promise(woken => setTimeout(woken, RETRY_MS));
    if (mine !== stream) return;
  }
}

function stop() {
  const last = stream;
  stream = null;
  if (last) last.abort();
}

/** Take events until they end, or do not come in time. */
async function follow(address, mine) {
  let late = 0;
  const abort = new AbortController(), wait = () => { clearTimeout(late); late = setTimeout(() => abort.abort(new Error("nothing came for " + LATE_MS / 1000 + " s")), LATE_MS); };
  mine.signal.addEventListener("abort", () => abort.abort());
  wait();
  try {
    const answer = await request(address, {signal: abort.signal});
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const {done, value} = await reader.read();
      if (done) return;
      wait();
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      const data = events.flatMap(event => event.split("\n")).filter(line => line.startsWith("data: "));
      if (mine !== stream) return;
      if (data.length) take(JSON.parse(data[data.length - 1].slice(6)));
    }
  } finally {
    clearTimeout(late);
    abort.abort();
  }
}

/** Say why a visitor does not see a place, and offer another token; without one that is known, ask for one. */
function refuse(error) {
  stop();
  if (error.status === 401 || !GUARDED.has(place.view)) return askWho(error.message);
  drawPlace();
  const other = make("button", {type: "button", id: "other-token"}, "Use another token");
  other.addEventListener("click", () => askWho(""));
  by("main").replaceChildren(by("title"), make("p", {class: "bad", role: "alert", id: "refused"}, error.message), make("p", {}, other));
  say("not allowed", "warn");
}

/** Ask for a token; what another one was shown is gone. */
function askWho(words) {
  stop();
  by("login-said").textContent = bearer ? words : "";
  bearer = "";
  drawPlace();
  by("main").replaceChildren(by("title"), make("div", {id: "sheets"}));
  say("a token is needed", "dim");
  by("login").hidden = false;
  by("token").focus();
}

/** Show what the console has of this place: what comes by itself, or what is asked for. */
function read() {
  listen();
  if (ASKED.has(place.view) && !document.hidden && by("login").hidden) readAsked();
}

async function readAsked() {
  const mine = place;
  say("asking", "dim");
  try {
    const answer = await request(place.view + "?" + query({cluster: place.cluster, item: place.item}));
    const shown = await answer.json();
    if (mine !== place) return;
    if (shown.title) by("title").textContent = shown.title;
    draw({...shown, untold: []});
    say("read at " + clock(Date.now()), "dim");
  } catch (error) {
    if (mine !== place) return;
    if (error instanceof RefusedError) return refuse(error);
    say("not answered", "bad");
    by("sheets").replaceChildren(make("p", {class: "bad"}, error.message));
    parts = new Map();
  }
}

function go() {
  const isFirst = place === null;
  place = placeOf(location.hash);
  pending = null;
  setPaused(false);
  if (LOGIN === "guarded") by("login").hidden = true;
  drawPlace();
  read();
  if (!isFirst) by("title").focus({preventScroll: true});
  scrollTo(0, 0);
}

function setPaused(paused) {
  isPaused = paused;
  by("pause").setAttribute("aria-pressed", String(paused));
  by("pause").hidden = ASKED.has(place.view);
  if (paused) say("paused at " + clock(lastAt), "warn");
  else if (pending) { const shown = pending; pending = null; take(shown); }
}

function up() {
  location.hash = place.item !== null ? hash(place.cluster, place.view) : "#/";
}

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !by("keys-on").checked || by("keys").open) return;
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  const first = [...parts.values()][0], number = Number(event.key);
  if (number >= 1 && number <= VIEWS.length && place.cluster !== null) location.hash = hash(place.cluster, VIEWS[number - 1][0]);
  else if (event.key === "/" && first) first.filter.focus();
  else if ((event.key === "[" || event.key === "]") && first) first.turn(event.key === "[" ? -1 : 1);
  else if (event.key === "p") by("pause").click();
  else if (event.key === "u" && place.cluster !== null) up();
  else if (event.key === "?") by("keys").showModal();
  else return;
  event.preventDefault();
}

/** Keep the token that came behind the address: the tab's storage is of this port alone, and cookies are not. */
function takeToken() {
  const found = /^#token=([\w-]+)$/.exec(location.hash);
  if (!found) return;
  sessionStorage.setItem("token", found[1]);
  history.replaceState(null, "", location.pathname + "#/");
}

by("login-form").addEventListener("submit", event => {
  event.preventDefault();
  bearer = by("token").value.trim();
  by("token").value = "";
  by("login").hidden = true;
  drawPlace();
  read();
});
by("skip").addEventListener("click", () => by("main").focus());
by("pause").addEventListener("click", () => setPaused(!isPaused));
by("help").addEventListener("click", () => by("keys").showModal());
by("keys-close").addEventListener("click", () => by("keys").close());
addEventListener("keydown", press);
addEventListener("hashchange", () => { takeToken(); go(); });
document.addEventListener("visibilitychange", () => { if (document.hidden) stop(); else read(); });
takeToken();
go();
