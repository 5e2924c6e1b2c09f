package web

import (
	"fmt"
	"net/http"

	"rsc.io/qr"

	"perch/gateway/httpserver"
)

// maxQR is the maximum length of the text of a QR code, in bytes. A URL is far shorter.
const maxQR = 300

// qrCode returns the QR code of a text of 1 to maxQR bytes, without the quiet zone. Each string is a row of the code, with
// 1 for a dark and 0 for a light module.
func qrCode(text string) ([]string, error) {
	if text == "" || len(text) > maxQR {
		return nil, &httpserver.Fault{Word: "bad_text", Sentence: fmt.Sprintf("text is needed, of at most %d bytes", maxQR), HTTP: http.StatusBadRequest}
	}
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		return nil, fmt.Errorf("encode a QR code: %w", err)
	}
	rows := make([]string, code.Size)
	for y := range rows {
		row := make([]byte, code.Size)
		for x := range row {
			row[x] = '0'
			if code.Black(x, y) {
				row[x] = '1'
			}
		}
		rows[y] = string(row)
	}
	return rows, nil
}
