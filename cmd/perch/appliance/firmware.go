package appliance

import (
	"fmt"
	"path/filepath"

	"perch/agent/notice"
	"perch/language"
	"perch/ota"
	"perch/store"
)

// openFirmware opens the catalogue of what robots may be upgraded to.
func (a *Appliance) openFirmware() error {
	signer, err := a.Config().Firmware.Signer()
	if err != nil {
		return fmt.Errorf("firmware.public_key: %w", err)
	}
	var words language.Catalogue
	a.Firmware, err = ota.OpenFirmware(ota.FirmwareOptions{
		Dir:    filepath.Join(a.Data, "firmware"),
		Images: store.NewTable[ota.Record](a.DB, "firmware"), Units: store.NewTable[ota.Unit](a.DB, "firmware-robots"),
		Key: a.tokenKey, Signer: signer, Bus: a.Bus, Zone: a.zone,
		Stopped: func(version string, failed, first int) {
			text := words.In(a.Config().Language.List()...).Say("firmware.stopped", "version", version, "failed", failed, "first", first)
			if _, err := a.notifier.Notify(notice.Notification{Text: text, Speak: true}); err != nil {
				a.Log.Error("a notification was not kept", "text", text, "err", err)
			}
		},
		Log: a.Log,
	})
	return err
}
