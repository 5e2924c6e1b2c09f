package main

import (
	"fmt"
	"path/filepath"
	"time"

	"perch/agent/notice"
	"perch/ota"
	"perch/store"
)

// openFirmware opens the catalogue of what robots may be upgraded to.
func (a *app) openFirmware(zone *time.Location) error {
	signer, err := a.config.Firmware.Signer()
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
