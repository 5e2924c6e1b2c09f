package simrobot

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"

	"perch/limit"
)

// picture returns a gradient as JPEG. It serves as the photo of the camera and as the content of
// the screen. quality is 1 to 100.
func picture(quality int) []byte {
	const width, height = 320, 240
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			m.Set(x, y, color.RGBA{uint8(x * 255 / width), uint8(y * 255 / height), 128, 255})
		}
	}
	var b bytes.Buffer
	_ = jpeg.Encode(&b, m, &jpeg.Options{Quality: quality}) // a buffer returns no error
	return b.Bytes()
}

// takePhoto posts a photo to the URL that the server sent with the MCP request initialize, and returns
// the body of the response. A status other than 200 is an error.
func takePhoto(ctx context.Context, r *Robot, v values) (string, error) {
	if r.body.visionURL == "" {
		return "", failure("Image explain URL or token is not set")
	}
	h := http.Header{"Device-Id": {r.id.MAC()}, "Client-Id": {r.flash.UUID}}
	if r.body.visionToken != "" {
		h.Set("Authorization", "Bearer "+r.body.visionToken)
	}
	reply, err := r.upload(ctx, r.body.visionURL, "----ESP32_CAMERA_BOUNDARY", "camera.jpg", v.text("question"), picture(80), h)
	if err != nil {
		return "", failure("Failed to upload photo")
	}
	return reply, nil
}

// snapshot posts the content of the screen to a URL.
func snapshot(ctx context.Context, r *Robot, v values) (string, error) {
	screen := picture(v.int("quality"))
	if _, err := r.upload(ctx, v.text("url"), "----ESP32_SCREEN_SNAPSHOT_BOUNDARY", "screenshot.jpg", "", screen, http.Header{}); err != nil {
		return "", failure("Failed to upload snapshot")
	}
	return "true", nil
}

// upload posts a picture as a form, and returns the body of the response. Like the firmware it
// sends the form in chunks, without a Content-Length. question may be empty. A status other than 200
// is an error.
func (r *Robot) upload(ctx context.Context, url, boundary, name, question string, jpeg []byte, h http.Header) (string, error) {
	var form bytes.Buffer // writes to it cannot fail
	w := multipart.NewWriter(&form)
	_ = w.SetBoundary(boundary)
	if question != "" {
		_ = w.WriteField("question", question)
	}
	part, _ := w.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {`form-data; name="file"; filename="` + name + `"`}, "Content-Type": {"image/jpeg"},
	})
	_, _ = part.Write(jpeg)
	_ = w.Close()
	// The MultiReader hides the length from net/http, which then sends chunks.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, io.MultiReader(&form))
	if err != nil {
		return "", err
	}
	req.Header = h
	req.Header.Set("Content-Type", w.FormDataContentType())
	req.Header.Set("User-Agent", "")
	response, err := r.http.Do(req)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, limit.File))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", response.StatusCode)
	}
	return string(text), err
}

// previewImage downloads a picture and discards it. The response must have a Content-Length.
func previewImage(ctx context.Context, r *Robot, v values) (string, error) {
	response, err := r.httpGet(ctx, v.text("url"), httpTimeout)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || response.ContentLength <= 0 {
		return "", failure("Unexpected status code: " + response.Status)
	}
	_, err = io.Copy(io.Discard, io.LimitReader(response.Body, response.ContentLength))
	return "true", err
}
