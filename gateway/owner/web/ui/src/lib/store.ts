// Values that the browser stores. Without storage they last until the page is closed, or are read as null.

export function kept(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

export function keep(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // There is no storage, or it is full.
  }
}

// pageRobot is the key of the robot in the page (robot/flash.ts).
export const pageRobot = "perch.robot";
