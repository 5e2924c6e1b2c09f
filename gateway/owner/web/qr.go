package web

import (
	"fmt"
	"net/http"

	"rsc.io/qr"

	"perch/gateway/httpserver"
)

// mostQR bounds the text of a QR code, in bytes. An address is far shorter.
const mostQR = 300

// qrCode returns the QR code of a text, without the quiet zone: a row of 0 and 1 for each
// line, where 1 is dark.
func qrCode(text string) ([]string, error) {
	if text == "" || len(text) > mostQR {
		return nil, &httpserver.Fault{Word: "bad_text", Sentence: fmt.Sprintf("text is needed, of at most %d bytes", mostQR), HTTP: http.StatusBadRequest}
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
