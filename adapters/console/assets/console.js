// What scripts add to the pages: parts that stay fresh only while nobody works in them, and the table of live events. Pages work without it.
(function () {
  "use strict";

  // A part is left alone while it has the focus or a field of it was changed, while the page is not seen, and while its box is not ticked.
  document.addEventListener("htmx:beforeRequest", function (event) {
    var part = event.target;
    if (!part.dataset || !part.dataset.live) { return; }
    var box = document.getElementById("auto");
    var typed = Array.prototype.some.call(part.querySelectorAll("textarea, input:not([type=hidden]):not([type=checkbox])"), function (f) { return f.value !== f.defaultValue; });
    if (document.hidden || typed || (box && !box.checked) || part.contains(document.activeElement)) { event.preventDefault(); }
  });

  // A page that cannot be had any more must not look fresh.
  function stale() {
    var part = document.querySelector("[data-live]");
    if (!part || part.querySelector(".stale")) { return; }
    var note = document.createElement("p");
    note.className = "said stale";
    note.setAttribute("role", "status");
    note.textContent = "These figures are old: the console does not answer, or you are signed out. Load the page again.";
    part.prepend(note);
  }
  document.addEventListener("htmx:responseError", stale);
  document.addEventListener("htmx:sendError", stale);

  // Times are shown in the zone of the reader, with UTC behind them. Texts have some of them inside.
  var stamp = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/;
  function local(at) { return at.toLocaleString(undefined, {dateStyle: "medium", timeStyle: "long"}); }
  function utc(at) { return at.toISOString().replace("T", " ").replace("Z", " UTC"); }
  function localise(part) {
    part.querySelectorAll("time[datetime]:not([data-local])").forEach(function (t) {
      var at = new Date(t.dateTime);
      t.dataset.local = "local";
      if (t.classList.contains("at")) { t.textContent = local(at); t.title = utc(at); } else { t.title = local(at) + ", " + utc(at); }
    });
    part.querySelectorAll(".why, .others li, .stamped").forEach(function (line) {
      line.childNodes.forEach(function (node) {
        for (var found; node.nodeType === 3 && (found = stamp.exec(node.data));) {
          var rest = node.splitText(found.index), after = rest.splitText(found[0].length), t = document.createElement("time");
          t.dateTime = found[0];
          t.dataset.local = "local";
          t.textContent = local(new Date(found[0]));
          t.title = utc(new Date(found[0]));
          rest.replaceWith(t);
          node = after;
        }
      });
    });
  }
  localise(document);
  document.addEventListener("htmx:load", function (event) { localise(event.detail.elt.parentNode || document); });

  // On a telephone the menu is one line: the page that is shown has to be in view.
  var current = document.querySelector(".top nav [aria-current]");
  if (current) { current.parentNode.scrollLeft = current.offsetLeft - current.parentNode.offsetLeft - 8; }

  // A slash anywhere but in a field leads to the search. Fields that are empty stay out of the address.
  document.addEventListener("keydown", function (event) {
    var find = document.getElementById("find");
    if (event.key !== "/" || !find || event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) { return; }
    event.preventDefault();
    find.focus();
    find.select();
  });
  document.addEventListener("submit", function (event) {
    if (event.target.method !== "get") { return; }
    Array.prototype.forEach.call(event.target.elements, function (field) { if (field.name && !field.value) { field.disabled = true; } });
  });
  window.addEventListener("pageshow", function () { document.querySelectorAll("form[method=get] :disabled").forEach(function (field) { field.disabled = false; }); });

  // What is typed into the schedule may be wrong: the page that says so is shown all the same.
  document.addEventListener("htmx:beforeSwap", function (event) {
    if (event.detail.xhr.status === 400) { event.detail.shouldSwap = true; event.detail.isError = false; }
  });

  var table = document.getElementById("stream");
  if (!table || !window.EventSource) { return; }
  var most = 200, held = false;
  var state = document.getElementById("stream-state"), pause = document.getElementById("stream-pause"), body = table.tBodies[0];
  state.textContent = "Connecting…";
  pause.hidden = false;
  pause.addEventListener("click", function () {
    held = !held;
    pause.textContent = held ? "Go on" : "Hold";
    state.textContent = held ? "Held: events that come now are not shown." : "Listening.";
  });

  function cell(row, text, to) {
    var td = row.insertCell();
    if (to && text) {
      var a = document.createElement("a");
      a.href = to;
      a.textContent = text;
      td.appendChild(a);
    } else {
      td.textContent = text || "";
    }
    return td;
  }

  function add(e) {
    var row = body.insertRow(0), at = new Date(e.time);
    cell(row, at.toLocaleTimeString()).title = e.time;
    cell(row, e.type);
    cell(row, e.agent);
    cell(row, e.id, e.to);
    cell(row, e.kind);
    var outcome = cell(row, "");
    if (e.outcome) {
      var badge = document.createElement("span");
      badge.className = "badge " + e.class;
      badge.textContent = e.outcome;
      outcome.appendChild(badge);
    }
    cell(row, e.took).className = "num";
    cell(row, e.text).className = "text";
    while (body.rows.length > most) { body.deleteRow(-1); }
  }

  var source = new EventSource(table.dataset.stream);
  source.onopen = function () { if (!held) { state.textContent = "Listening."; } };
  source.onerror = function () { state.textContent = "Not connected; trying again…"; };
  source.onmessage = function (m) { if (!held) { add(JSON.parse(m.data)); } };
  source.addEventListener("missed", function (m) { state.textContent = m.data + " events were missed: they came too fast, or nobody listened."; });
})();
