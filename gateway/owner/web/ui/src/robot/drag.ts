// Dragging turns the head. A touch that does not move is a tap.

const still = 7; // pixels; a shorter movement is a tap
const perWidth = 150; // degrees for a drag over the whole width
const perHeight = 100; // degrees for a drag over the whole height

export class Drag {
  moving = false;
  private from: { x: number; y: number; yaw: number; pitch: number; id: number } | undefined;

  constructor(private readonly head: { yaw: number; pitch: number }, private readonly tap: () => void) {}

  readonly down = (e: PointerEvent): void => {
    if (e.button !== 0 || this.from) return;
    this.from = { x: e.clientX, y: e.clientY, yaw: this.head.yaw, pitch: this.head.pitch, id: e.pointerId };
    (e.currentTarget as Element).setPointerCapture(e.pointerId);
  };

  readonly move = (e: PointerEvent): void => {
    const f = this.from;
    if (!f || e.pointerId !== f.id) return;
    const dx = e.clientX - f.x;
    const dy = e.clientY - f.y;
    if (!this.moving && Math.hypot(dx, dy) < still) return;
    this.moving = true;
    const box = (e.currentTarget as Element).getBoundingClientRect();
    // The viewer's right is the robot's left, which is negative.
    this.head.yaw = f.yaw - (dx / box.width) * perWidth;
    this.head.pitch = f.pitch - (dy / box.height) * perHeight;
  };

  readonly up = (e: PointerEvent): void => {
    if (this.from?.id !== e.pointerId) return;
    const tapped = !this.moving;
    this.cancel();
    if (tapped) this.tap();
  };

  readonly cancel = (): void => {
    this.from = undefined;
    this.moving = false;
  };
}
