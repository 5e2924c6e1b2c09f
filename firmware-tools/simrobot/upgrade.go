package simrobot

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"perch/ota/espimage"
)

const (
	slotSize        = 0x4f0000         // size of a partition for an application, in bytes
	assetsSize      = 4 << 20          // size of the partition for assets, in bytes
	chipRevision    = 2                // revision 0.2 of the chip: major * 100 + minor
	downloadTimeout = 10 * time.Minute // bounds a download; the firmware only bounds each read

	// maxInstalls bounds the images that a robot installs in a row. A loop of installations
	// would wear out the flash of a real robot.
	maxInstalls = 5
)

// setBuild makes the robot run a build, if b is not nil.
func (r *Robot) setBuild(b *build) {
	if b != nil {
		r.firmware.version, r.firmware.elf = b.Version, b.ELF
	}
}

// rollBack returns to the previous firmware if the running one is not confirmed, as the boot
// loader does.
func (r *Robot) rollBack() {
	if !r.flash.Pending {
		return
	}
	from := r.firmware.version
	r.flash.Running, r.flash.Pending = r.flash.Before, false
	r.setBuild(r.flash.Running)
	r.o.Observe(RolledBack{From: from, To: r.firmware.version})
}

// install downloads an image and boots it. rebooted is false if the image could not be
// installed, which is an error only if ctx has ended. The error is a Crash after maxInstalls images in
// a row.
func (r *Robot) install(ctx context.Context, url string) (rebooted bool, err error) {
	if r.installs++; r.installs > maxInstalls {
		return false, crash("the robot installs an image at every boot, without end")
	}
	image, err := r.download(ctx, url)
	if err == nil && r.flash.Pending {
		err = errors.New("esp_ota_begin refuses: the running image is not confirmed yet")
	}
	if err != nil {
		r.o.Observe(NotUpgraded{Why: err.Error()})
		return false, ctx.Err()
	}
	r.flash.Before = &build{Version: r.firmware.version, ELF: r.firmware.elf}
	r.flash.Running = &build{Version: image.App.Version, ELF: hex.EncodeToString(image.App.ELF[:])}
	r.flash.Pending = true
	r.setBuild(r.flash.Running)
	r.o.Observe(Upgraded{Version: image.App.Version})
	if r.o.Crashes {
		r.rollBack()
	}
	return true, r.flash.save()
}

// download downloads an image and checks it, as esp_ota_end does.
func (r *Robot) download(ctx context.Context, url string) (espimage.Image, error) {
	text, err := r.fetch(ctx, url, slotSize)
	if err != nil {
		return espimage.Image{}, err
	}
	image, err := espimage.Read(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return image, err
	}
	chip, _ := espimage.ParseChip("esp32s3")
	return image, image.Fits(espimage.Target{Chip: chip, Revision: chipRevision, Slot: slotSize})
}

// httpGet sends a GET request without a User-Agent. timeout includes reading the whole body.
func (r *Robot) httpGet(ctx context.Context, url string, timeout time.Duration) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Close = true
	request.Header["User-Agent"] = nil
	client := *r.http
	client.Timeout = timeout
	return client.Do(request)
}

// fetch downloads a file for a partition. It returns an error if the response has no Content-Length,
// or if the file has more than partitionSize bytes.
func (r *Robot) fetch(ctx context.Context, url string, partitionSize int64) ([]byte, error) {
	response, err := r.httpGet(ctx, url, downloadTimeout)
	if err != nil {
		return nil, fmt.Errorf("download: %w", err)
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("download: status %d", response.StatusCode)
	case response.ContentLength <= 0:
		return nil, errors.New("download: failed to get content length")
	case response.ContentLength > partitionSize:
		return nil, fmt.Errorf("download: %d bytes do not fit into the partition", response.ContentLength)
	}
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("download: %w", err)
	}
	return data, nil
}

// fetchAssets downloads the assets from the URL in the flash. Like the firmware it first removes the
// URL, so that it tries only once. A failed download is an error only if ctx has ended.
func (r *Robot) fetchAssets(ctx context.Context) error {
	url := r.flash.AssetsURL
	r.flash.AssetsURL = ""
	if err := r.flash.save(); err != nil {
		return err
	}
	text, err := r.fetch(ctx, url, assetsSize)
	var a espimage.Assets
	if err == nil {
		a, err = espimage.ReadAssets(bytes.NewReader(text), int64(len(text)))
	}
	if err != nil {
		r.o.Observe(NotFetched{Why: err.Error()})
		return ctx.Err()
	}
	r.o.Observe(Fetched{Assets: a})
	return nil
}
