package main

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"perch/agent/notice"
	"perch/ota"
	"perch/store"
)

// firmwareConfig is whose images robots may be given.
type firmwareConfig struct {
	PublicKey string `yaml:"public_key"` // ed25519, base64; empty is anybody's
}

func (f firmwareConfig) signer() (ed25519.PublicKey, error) {
	if f.PublicKey == "" {
		return nil, nil
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(f.PublicKey))
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, errors.New("it is no ed25519 public key: 32 bytes in base64")
	}
	return key, nil
}

func (k *checker) firmware(f firmwareConfig) {
	if _, err := f.signer(); err != nil {
		k.fault("firmware.public_key", "%s", err)
	}
}

// openFirmware opens the catalogue of what robots may be upgraded to.
func (a *app) openFirmware(zone *time.Location) error {
	signer, err := a.config.Firmware.signer()
	if err != nil {
		return fmt.Errorf("firmware.public_key: %w", err)
	}
	a.firmware, err = ota.OpenFirmware(ota.FirmwareOptions{
		Dir:    filepath.Join(a.data, "firmware"),
		Images: store.NewTable[ota.Record](a.db, "firmware"), Units: store.NewTable[ota.Unit](a.db, "firmware-robots"),
		Key: a.tokenKey, Signer: signer, Bus: a.bus, Zone: zone,
		Notify: func(text string) {
			if _, err := a.herald.Notify(notice.Notification{Text: text, Speak: true}); err != nil {
				a.log.Error("a notification was not kept", "text", text, "err", err)
			}
		},
		Log: a.log,
	})
	return err
}
