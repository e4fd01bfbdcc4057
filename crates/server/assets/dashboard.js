// The dashboard's script. Pages work without it; with it, times are local and what moves is shown
// as it moves: when the server says that something has moved, the page is fetched again and the
// elements marked `data-live` are swapped where they differ. Nothing is evaluated, nothing is
// fetched from elsewhere, and a hidden tab asks for nothing.
"use strict";

const POLL_MS = 5000;
const body = document.body;
const trusted = window.trustedTypes
  ? window.trustedTypes.createPolicy("mainspring", { createHTML: (text) => text })
  : { createHTML: (text) => text };

// Local times; the exact one in UTC stays in the title.
const clock = new Intl.DateTimeFormat(document.documentElement.lang, {
  year: "numeric", month: "2-digit", day: "2-digit",
  hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23",
});
const hours = new Intl.DateTimeFormat(document.documentElement.lang, {
  hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23",
});
function localise(root) {
  const today = new Date().toDateString();
  for (const time of root.querySelectorAll("time[data-when]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    time.textContent = at.toDateString() === today ? hours.format(at) : clock.format(at);
  }
}

// What the server last sent of each live element, before times became local.
const sent = new Map();
for (const one of document.querySelectorAll("[data-live][id]")) sent.set(one.id, one.innerHTML);
localise(document);

// A strip of links that is wider than the screen is shown where its current one is.
for (const here of document.querySelectorAll(".side [aria-current], .tabs [aria-current]")) {
  const strip = here.closest(".side, .tabs");
  const [all, one] = [strip.getBoundingClientRect(), here.getBoundingClientRect()];
  strip.scrollLeft += one.left - all.left - (all.width - one.width) / 2;
}

function swap(fresh) {
  for (const next of fresh.querySelectorAll("[data-live][id]")) {
    const now = document.getElementById(next.id);
    const html = next.innerHTML;
    if (!now || sent.get(next.id) === html) continue;
    sent.set(next.id, html);
    const active = document.activeElement;
    const focused = now.contains(active) ? active.id || active.getAttribute("href") : null;
    const scrolled = [...now.querySelectorAll("pre")].map((one) => [one.scrollTop, one.scrollLeft]);
    const across = now.scrollLeft;
    localise(next);
    now.replaceChildren(...[...next.childNodes].map((node) => document.importNode(node, true)));
    now.scrollLeft = across;
    now.querySelectorAll("pre").forEach((one, index) => {
      if (scrolled[index]) [one.scrollTop, one.scrollLeft] = scrolled[index];
    });
    if (focused) {
      const is = (one) => one.id === focused || one.getAttribute("href") === focused;
      const again = [...now.querySelectorAll("a, button, input")].find(is);
      if (again) again.focus({ preventScroll: true });
    }
    offerCopies(now);
  }
}

let looking = false;
let wanted = false;
async function look() {
  if (document.hidden) return;
  if (looking) { wanted = true; return; }
  looking = true;
  try {
    const answer = await fetch(location.href, { headers: { "x-live": "1" }, redirect: "manual" });
    if (answer.status === 401) { location.reload(); return; }
    if (answer.ok) {
      const text = trusted.createHTML(await answer.text());
      swap(new DOMParser().parseFromString(text, "text/html"));
    }
    sign(answer.ok ? "on" : "off");
  } catch (_) {
    sign("off");
  }
  looking = false;
  if (wanted) { wanted = false; look(); }
}

function sign(state) {
  const light = document.getElementById("live-sign");
  if (!light) return;
  light.hidden = false;
  light.className = "live is-" + state;
  light.textContent = { on: body.dataset.liveOn, off: body.dataset.liveOff,
    paused: body.dataset.livePaused }[state];
}

let stream = null;
let poll = null;
function listen() {
  if (!body.dataset.livePath || !document.querySelector("[data-live]") || stream) return;
  stream = new EventSource(body.dataset.livePath);
  stream.addEventListener("open", () => { sign("on"); look(); });
  stream.addEventListener("moved", look);
  stream.addEventListener("error", () => {
    // A refusal closes the stream for good; a server that restarts is found again.
    if (stream && stream.readyState === EventSource.CLOSED) { stream = null; }
    sign("off");
  });
  // Numbers that no move changes, and a stream that could not be had.
  poll = poll || setInterval(() => { if (!stream) listen(); look(); }, POLL_MS);
}
function rest() {
  if (stream) { stream.close(); stream = null; }
  if (poll) { clearInterval(poll); poll = null; }
}
document.addEventListener("visibilitychange", () => {
  if (document.hidden) { rest(); sign("paused"); } else { listen(); look(); }
});
window.addEventListener("pagehide", rest);
window.addEventListener("pageshow", (event) => { if (event.persisted) listen(); });
if (!document.hidden) listen();

// Ids are long: a button that copies one.
function offerCopies(root) {
  for (const button of root.querySelectorAll("[data-copy]")) {
    if (!navigator.clipboard) continue;
    button.hidden = false;
    button.onclick = () => {
      const from = document.getElementById(button.dataset.copy);
      if (from) navigator.clipboard.writeText(from.textContent);
    };
  }
}
offerCopies(document);

// The link of the start: one click less.
const atOnce = document.querySelector("form[data-send-at-once]");
if (atOnce) atOnce.submit();
