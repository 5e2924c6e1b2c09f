package appliance

import (
	"perch/device"
	"perch/ota"
)

// updates is the catalogue as Home Assistant's mirror has it.
type updates struct{ *ota.Firmware }

func (u updates) Update(id device.ID) (installed, latest string) {
	update := u.Firmware.Update(id)
	return update.Installed, update.Latest
}
