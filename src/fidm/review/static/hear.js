// The recording of a segment: played from a little before it to a little after it, where the study has one.

import { $ } from "./dom.js";

const ADDRESS = "/api/audio/";
const MARGIN_S = 0.3;

export class Hear {
  constructor(onTrouble) {
    this.audio = $("recording");
    this.from = this.to = 0;
    $("hear").addEventListener("click", () => this.play());
    this.audio.addEventListener("timeupdate", () => { if (this.audio.currentTime >= this.to) this.audio.pause(); });
    for (const event of ["play", "pause", "ended"]) this.audio.addEventListener(event, () => this.label());
    this.audio.addEventListener("error", () => {
      this.label();
      if (this.audio.getAttribute("src")) onTrouble("The recording cannot be played. Is the file still there, and of a kind that this browser plays?");
    });
    this.label();
  }

  // Offer a segment's recording; nothing is offered where there is none, or no times.
  show(ticket, turns) {
    this.audio.pause();
    const starts = turns.map((turn) => turn.start_s).filter((time) => time !== null);
    const ends = turns.map((turn) => turn.end_s).filter((time) => time !== null);
    const isThere = Boolean(ticket && starts.length && ends.length);
    $("hear").hidden = !isThere;
    if (!isThere) return;
    this.from = Math.max(0, Math.min(...starts) - MARGIN_S);
    this.to = Math.max(...ends) + MARGIN_S;
    const address = `${ADDRESS}${ticket}`;
    if (this.audio.getAttribute("src") !== address) this.audio.setAttribute("src", address);
  }

  get isPlaying() { return !this.audio.paused && !this.audio.ended; }

  // From the start of the segment, or stop.
  play() {
    if ($("hear").hidden) return;
    if (this.isPlaying) { this.audio.pause(); return; }
    this.audio.currentTime = this.from;
    this.audio.play().catch(() => this.label());  // stopped before it began, or told by the event "error"
  }

  label() {
    const words = this.isPlaying ? "Stop" : "Listen";
    $("hear").firstChild.textContent = `${words} `;
    $("hear").setAttribute("aria-label", this.isPlaying ? "Stop the recording" : "Listen to the recording of this segment");
  }
}
