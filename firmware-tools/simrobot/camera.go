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

// picture returns the picture of the camera and of the screen: a JPEG of a gradient.
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

// takePhoto posts a photo to the address from initialize. The body of an answer
// with status 200 is the tool's text.
func takePhoto(ctx context.Context, r *Robot, v values) (string, error) {
	if r.body.visionURL == "" {
		return "", failure("Image explain URL or token is not set")
	}
	h := http.Header{"Device-Id": {r.id.MAC()}, "Client-Id": {r.flash.UUID}}
	if r.body.visionToken != "" {
		h.Set("Authorization", "Bearer "+r.body.visionToken)
	}
	answer, err := r.upload(ctx, r.body.visionURL, "----ESP32_CAMERA_BOUNDARY", "camera.jpg", v.text("question"), picture(80), h)
	if err != nil {
		return "", failure("Failed to upload photo")
	}
	return answer, nil
}

// snapshot posts the content of the screen.
func snapshot(ctx context.Context, r *Robot, v values) (string, error) {
	screen := picture(v.int("quality"))
	if _, err := r.upload(ctx, v.text("url"), "----ESP32_SCREEN_SNAPSHOT_BOUNDARY", "screenshot.jpg", "", screen, http.Header{}); err != nil {
		return "", failure("Failed to upload snapshot")
	}
	return "true", nil
}

// upload posts a form in chunks, without a length, as the firmware does.
func (r *Robot) upload(ctx context.Context, to, boundary, name, question string, jpeg []byte, h http.Header) (string, error) {
	var form bytes.Buffer // which returns no error
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
	// The MultiReader hides the length, so that the body is sent in chunks.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, io.MultiReader(&form))
	if err != nil {
		return "", err
	}
	req.Header = h
	req.Header.Set("Content-Type", w.FormDataContentType())
	req.Header.Set("User-Agent", "")
	answer, err := r.http.Do(req)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, limit.File))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", answer.StatusCode)
	}
	return string(text), err
}

// previewImage fetches a picture, whose length must be announced.
func previewImage(ctx context.Context, r *Robot, v values) (string, error) {
	answer, err := r.httpGet(ctx, v.text("url"), otaLimit)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK || answer.ContentLength <= 0 {
		return "", failure("Unexpected status code: " + answer.Status)
	}
	_, err = io.Copy(io.Discard, io.LimitReader(answer.Body, answer.ContentLength))
	return "true", err
}
