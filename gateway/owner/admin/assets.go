package admin

import (
	"context"
	"net/http"
	"time"

	"perch/device"
	"perch/gateway/httpserver"
)

// wish is the body that points a robot at an asset file.
type wish struct {
	Name string `json:"name"`
}

// assetsTool is the firmware's own, which sets the address where its next assets
// are. It fetches them when it next starts.
const assetsTool = "self.assets.set_download_url"

// pointAtAssets sends a robot the address of an asset file. That takes an open
// channel: a robot that gets it later would get that of a file that may be
// gone by then.
func (d *API) pointAtAssets(ctx context.Context, r device.Robot, w wish) (Result, error) {
	path, err := d.o.Firmware.AssetFor(r.ID, w.Name, time.Now())
	if err != nil {
		return Result{}, err
	}
	if r.BaseURL == "" {
		return Result{}, &httpserver.Fault{Word: "no_address",
			Sentence: "it is not known at which address this robot reaches the appliance; restart the robot", HTTP: http.StatusConflict}
	}
	return d.call(ctx, r.ID, assetsTool, call{Arguments: map[string]any{"url": r.BaseURL + path}})
}
