// The camera: the webcam if the browser allows it, and otherwise a drawn picture, which says that it is drawn.

export interface Picture {
  jpeg: Blob;
  drawn: boolean;
}

const width = 320;
const height = 240;

export async function picture(note: string): Promise<Picture> {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const pen = canvas.getContext("2d")!;
  const seen = await webcam(pen).catch(() => false);
  if (!seen) draw(pen, note);
  return { jpeg: await jpegOf(canvas, 0.8), drawn: !seen };
}

async function webcam(pen: CanvasRenderingContext2D): Promise<boolean> {
  if (!window.isSecureContext || !navigator.mediaDevices?.getUserMedia) return false;
  const stream = await navigator.mediaDevices.getUserMedia({ video: { width: { ideal: 640 }, height: { ideal: 480 } } });
  try {
    const video = document.createElement("video");
    video.muted = true;
    video.playsInline = true;
    video.srcObject = stream;
    await video.play();
    await new Promise((r) => setTimeout(r, 300)); // the first pictures are dark
    const scale = Math.max(width / video.videoWidth, height / video.videoHeight);
    const w = video.videoWidth * scale;
    const h = video.videoHeight * scale;
    pen.drawImage(video, (width - w) / 2, (height - h) / 2, w, h);
    return true;
  } finally {
    for (const t of stream.getTracks()) t.stop();
  }
}

// draw draws a picture with the date and a note, so that it is not mistaken for a photo.
function draw(pen: CanvasRenderingContext2D, note: string): void {
  const sky = pen.createLinearGradient(0, 0, 0, height);
  sky.addColorStop(0, "#8ec5ff");
  sky.addColorStop(1, "#fbeac7");
  pen.fillStyle = sky;
  pen.fillRect(0, 0, width, height);
  pen.fillStyle = "#ffd34d";
  pen.beginPath();
  pen.arc(250, 60, 26, 0, 2 * Math.PI);
  pen.fill();
  pen.fillStyle = "#5c9a63";
  pen.beginPath();
  pen.ellipse(160, 250, 260, 90, 0, 0, 2 * Math.PI);
  pen.fill();
  pen.fillStyle = "#1c2126";
  pen.font = "15px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.fillText(note, width / 2, 200, width - 20);
  pen.fillText(new Date().toLocaleString(), width / 2, 222, width - 20);
}

function jpegOf(canvas: HTMLCanvasElement, quality: number): Promise<Blob> {
  return new Promise((resolve, reject) => {
    canvas.toBlob((b) => (b ? resolve(b) : reject(new Error("no picture"))), "image/jpeg", quality);
  });
}

// upload posts a form as the firmware does, and returns the body of the response.
export async function upload(to: string, jpeg: Blob, question: string, headers: Record<string, string>, signal: AbortSignal): Promise<string> {
  const form = new FormData();
  if (question) form.append("question", question);
  form.append("file", jpeg, "camera.jpg");
  const answer = await fetch(to, { method: "POST", headers, body: form, signal: AbortSignal.any([signal, AbortSignal.timeout(30_000)]) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${answer.status}`);
  return text;
}
