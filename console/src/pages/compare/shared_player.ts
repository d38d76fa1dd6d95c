/** One player for several films: to play, pause or seek one of them does so with all. */

export interface Playing {
  isPlaying: boolean;
  /** Seconds from the beginning. */
  time: number;
  /** Seconds of the longest film. */
  duration: number;
}

const DRIFT_SECONDS = 0.12;
const SAME_SECONDS = 0.02;
const END_SECONDS = 0.05;

export class SharedPlayer {
  private state: Playing = { isPlaying: false, time: 0, duration: 0 };
  private rate = 1;
  private readonly films = new Set<HTMLVideoElement>();
  /** Where we sent a film. The event that follows is no wish of the user. */
  private readonly aims = new WeakMap<HTMLVideoElement, number>();
  private readonly listeners = new Set<() => void>();

  /** Add a film. It takes the others' position. Return what removes it. */
  readonly add = (film: HTMLVideoElement): (() => void) => {
    const reactions = {
      loadedmetadata: () => this.join(film),
      // Events come late: by then the film may have been started or stopped again.
      play: () => film.paused || this.play(),
      pause: () => film.paused && !hasEnded(film) && this.pause(),
      ended: () => this.startOver(),
      seeking: () => this.follow(film),
      ratechange: () => this.setRate(film.playbackRate),
    };
    for (const [name, react] of Object.entries(reactions)) film.addEventListener(name, react);
    this.films.add(film);
    if (film.readyState > 0) this.join(film);
    return () => {
      for (const [name, react] of Object.entries(reactions)) film.removeEventListener(name, react);
      this.films.delete(film);
      this.tell({ duration: this.longest()?.duration ?? 0 });
    };
  };

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly get = (): Playing => this.state;

  toggle(): void {
    if (this.state.isPlaying) this.pause();
    else this.play();
  }

  seek(time: number): void {
    this.tell({ time });
    for (const film of this.films) this.move(film, time);
  }

  private play(): void {
    if (this.state.isPlaying) return;
    const { time, duration } = this.state;
    this.tell({ isPlaying: true });
    if (time >= duration - END_SECONDS) this.seek(0);
    else for (const film of this.films) this.start(film);
    requestAnimationFrame(this.keepPace);
  }

  private pause(): void {
    if (!this.state.isPlaying) return;
    this.tell({ isPlaying: false });
    for (const film of this.films) film.pause();
    const time = this.longest()?.currentTime ?? 0;
    this.seek(time);
  }

  private setRate(rate: number): void {
    if (rate === this.rate) return;
    this.rate = rate;
    for (const film of this.films) film.playbackRate = rate;
  }

  /** Films repeat together, when the longest has ended. */
  private startOver(): void {
    if (this.state.isPlaying && [...this.films].every(hasEnded)) this.seek(0);
  }

  private join(film: HTMLVideoElement): void {
    film.playbackRate = this.rate;
    this.tell({ duration: this.longest()?.duration ?? 0 });
    this.move(film, this.state.time);
  }

  private follow(film: HTMLVideoElement): void {
    const aim = this.aims.get(film);
    this.aims.delete(film);
    if (aim !== undefined && Math.abs(aim - film.currentTime) < SAME_SECONDS) return;
    this.tell({ time: film.currentTime });
    for (const other of this.films) if (other !== film) this.move(other, film.currentTime);
  }

  /** A film that is shorter stands at its end. */
  private move(film: HTMLVideoElement, time: number): void {
    if (film.readyState === 0) return;
    const aim = Math.min(time, film.duration);
    if (Math.abs(film.currentTime - aim) > SAME_SECONDS) {
      this.aims.set(film, aim);
      film.currentTime = aim;
    }
    if (this.state.isPlaying) this.start(film);
  }

  private start(film: HTMLVideoElement): void {
    const aim = Math.min(this.state.time, film.duration);
    if (film.paused && aim < film.duration - END_SECONDS) film.play().catch(() => undefined);
  }

  private readonly keepPace = (): void => {
    const lead = this.longest();
    if (!this.state.isPlaying || !lead) return;
    if (!lead.seeking) this.tell({ time: lead.currentTime });
    for (const film of this.films) {
      const aim = Math.min(lead.currentTime, film.duration);
      const isLate = Math.abs(film.currentTime - aim) > DRIFT_SECONDS * this.rate;
      if (film !== lead && isLate && !film.seeking && !lead.seeking) this.move(film, aim);
    }
    requestAnimationFrame(this.keepPace);
  };

  private longest(): HTMLVideoElement | undefined {
    const known = [...this.films].filter((film) => film.duration > 0);
    return known.toSorted((a, b) => b.duration - a.duration)[0];
  }

  private tell(change: Partial<Playing>): void {
    this.state = { ...this.state, ...change };
    for (const listener of this.listeners) listener();
  }
}

function hasEnded(film: HTMLVideoElement): boolean {
  return film.ended || film.currentTime >= film.duration - END_SECONDS;
}
