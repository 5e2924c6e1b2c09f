package simrobot

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"perch/device"
	"perch/device/xiaozhi"
)

// flash is the content of the robot's flash: the settings, and which firmware is installed. It is
// stored as JSON.
type flash struct {
	path       string            // Options.FlashFile
	UUID       string            `json:"uuid"` // sent as Client-Id
	Volume     int               `json:"volume"`
	Brightness int               `json:"brightness"`
	Theme      string            `json:"theme"`
	WebSocket  webSocketSettings `json:"websocket"`
	MQTT       mqttSettings      `json:"mqtt,omitzero"`
	AssetsURL  string            `json:"assets_url,omitempty"` // assets to download at the next start

	Running *build `json:"running,omitempty"` // nil if no image was ever installed, so that the version of Options.Firmware runs
	Before  *build `json:"before,omitempty"`  // firmware to roll back to; nil if no image was ever installed
	Pending bool   `json:"pending,omitempty"` // Running is not confirmed yet: the next boot starts Before
}

// build identifies a firmware image.
type build struct {
	Version string `json:"version"`
	ELF     string `json:"elf_sha256"`
}

// webSocketSettings are the settings in the namespace "websocket" of the flash.
type webSocketSettings struct {
	URL     string          `json:"url"`
	Token   string          `json:"token"`
	Version xiaozhi.Framing `json:"version"`
}

// framing returns the framing for the version. If the version is 0 or invalid, the framing is 1.
func (w webSocketSettings) framing() xiaozhi.Framing {
	if w.Version.Valid() {
		return w.Version
	}
	return xiaozhi.Framing1
}

// loadFlash reads the flash from a file, which it creates if necessary. If path is empty, it
// returns a flash with default settings and with a Client-Id that depends only on the robot ID, so
// that every run simulates the same robot.
func loadFlash(path string, id device.ID) (*flash, error) {
	f := &flash{path: path, Volume: 70, Brightness: 75, Theme: "light"}
	if path == "" {
		sum := sha256.Sum256([]byte("client " + id))
		f.UUID = uuid([16]byte(sum[:16]))
		return f, nil
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, f)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the flash: %w", err)
	}
	if f.UUID == "" {
		var random [16]byte
		rand.Read(random[:])
		f.UUID = uuid(random)
	}
	return f, f.save()
}

// save writes the flash to its file, if Options.FlashFile names a file.
func (f *flash) save() error {
	if f.path == "" {
		return nil
	}
	text, _ := json.MarshalIndent(f, "", "  ") // cannot fail: strings and numbers
	// Only this user may read the file, which contains the robot's token.
	if err := os.WriteFile(f.path, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the flash: %w", err)
	}
	return nil
}

// uuid formats 16 bytes as a version 4 UUID (RFC 9562 section 5.4).
func uuid(b [16]byte) string {
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
