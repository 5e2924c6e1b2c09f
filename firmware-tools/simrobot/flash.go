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

// flash is the content of the robot's NVS partition, which survives a reboot.
type flash struct {
	path       string
	UUID       string    `json:"uuid"` // the Client-Id
	Volume     int       `json:"volume"`
	Brightness int       `json:"brightness"`
	Theme      string    `json:"theme"`
	WebSocket  webSocket `json:"websocket"`
	MQTT       mqtt      `json:"mqtt,omitzero"`
	AssetsURL  string    `json:"assets_url,omitempty"`

	// The partitions of applications, and otadata.

	Running *build `json:"running,omitempty"` // nil is the factory's
	Before  *build `json:"before,omitempty"`  // the boot loader rolls back to this
	Pending bool   `json:"pending,omitempty"` // Running is not confirmed yet
}

// build identifies an image by its own description.
type build struct {
	Version string `json:"version"`
	ELF     string `json:"elf_sha256"`
}

// webSocket is namespace "websocket". Keys missing in a bootstrap keep their values.
type webSocket struct {
	URL     string          `json:"url"`
	Token   string          `json:"token"`
	Version xiaozhi.Framing `json:"version"`
}

// framing returns the framing for the version: 0 and invalid ones give 1.
func (w webSocket) framing() xiaozhi.Framing {
	if w.Version.Valid() {
		return w.Version
	}
	return xiaozhi.Framing1
}

// loadFlash reads the file; without a file the flash is erased, and the Client-Id is
// made from the MAC, so that every run is the same robot.
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

func (f *flash) save() error {
	if f.path == "" {
		return nil
	}
	text, _ := json.MarshalIndent(f, "", "  ") // texts and numbers
	// 0600, since it has the robot's token.
	if err := os.WriteFile(f.path, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the flash: %w", err)
	}
	return nil
}

// uuid spells 16 bytes as a version 4 UUID (RFC 9562 section 5.4).
func uuid(b [16]byte) string {
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
