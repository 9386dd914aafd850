# Legal and illegal heads, lengths, chunks and trailers, case by case. A proxy in front of pted must
# not find other messages in the same bytes than pted does.
option --header-timeout=60s --body-timeout=60s
model add

play request lines
behind \r\nHost: a\r\n\r\n
accepted GET /v2 HTTP/1.1
accepted GET /v2/health/live?a=b&c HTTP/1.1
accepted GET http://a/v2 HTTP/1.1
accepted GET HTTP://a/v2 HTTP/1.1
refused 400 GET  /v2 HTTP/1.1
body .*request line: expected a target behind one space, got a space.*
refused 400 GET /v2  HTTP/1.1
body .*request line: expected HTTP/1.1 behind one space, got a space.*
refused 400 GET /v2 HTTP/1.1\x20
refused 400 GET /v2 HTTP/1.1\t
refused 400 GET\t/v2 HTTP/1.1
refused 400 GET /v2\tHTTP/1.1
refused 400 GET\x0b/v2 HTTP/1.1
refused 400 \x20GET /v2 HTTP/1.1
refused 400 \tGET /v2 HTTP/1.1
refused 400 GET
refused 400 GET\x20
refused 400 GET\x20\x20HTTP/1.1
refused 400 /v2 HTTP/1.1
refused 400 GET /v2 /v2 HTTP/1.1
refused 400 HTTP/1.1 200 OK

play methods
behind \x20/v2 HTTP/1.1\r\nHost: a\r\n\r\n
refused 400 get
refused 400 Get
refused 400 QUERY
body .*request line: .*method.*
refused 400 FOO
body .*request line: .*method.*
refused 400 GETT
refused 400 G@T
refused 400 G\x00T
refused 400 G\xc9T
refused 400 "GET"
refused 400 GE(T

play targets
before GET\x20
behind \x20HTTP/1.1\r\nHost: a\r\n\r\n
refused 400 /v2\x00
refused 400 /v2\x01
refused 400 /v2\x7f
refused 400 /v2\xff
refused 400 /v2\xc3\xa4
refused 400 v2
refused 400 ?

play a target that is not a path
>> OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\nCONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\nGET ftp://a/v2 HTTP/1.1\r\nHost: a\r\n\r\nTRACE /v2 HTTP/1.1\r\nHost: a\r\n\r\n
< 400
< 400
< 400
< 405
field Allow: GET, HEAD
get /v2/health/live
< 200

play protocols that are not HTTP
behind \r\nHost: a\r\n\r\n
refused 400 GET /v2 RTSP/1.0
body .*request line: expected HTTP/1.1 behind one space, got 'R'.*
refused 400 GET /v2 RTSP/1.1
refused 400 OPTIONS /v2 RTSP/1.0
refused 400 GET /v2 ICE/1.0
refused 400 SOURCE /v2 ICE/1.0
refused 400 SOURCE /v2 ICE/1.1
refused 400 GET /v2 SIP/2.0
refused 400 GET /v2 HTTPS/1.1
refused 400 GET /v2 http/1.1
refused 400 GET /v2 Http/1.1
refused 400 GET /v2 HTP/1.1
refused 400 GET /v2 HTTP
refused 400 GET /v2 HTTP1.1
refused 400 GET /v2 HTTP\\1.1
refused 400 GET /v2 HTTP /1.1
refused 400 GET /v2 XHTTP/1.1

play versions
before GET /v2 HTTP/
behind \r\nHost: a\r\n\r\n
refused 505 2.0
body .*expected HTTP/1.0 or HTTP/1.1, got HTTP/2.0.*
refused 505 0.9
refused 505 1.2
refused 505 1.9
refused 505 3
refused 505 1
refused 505 11.1
refused 505 1.10
refused 505 1.1.1
refused 400 x.1
refused 400 1.x
refused 400 1.
refused 400 .1
refused 400 1,1
refused 400 -1.1
refused 400 1.1x
refused 400 1.1\x00
refused 400 \x20

play no version
refused 505 GET /v2\r\nHost: a\r\n\r\n
body .*expected HTTP/1.0 or HTTP/1.1, got none.*
refused 505 GET /v2\r\n
refused 400 GET /v2\n
refused 505 PRI * HTTP/2.0\r\n\r\nSN\r\n\r\n

play each line ends with CR LF
accepted GET /v2 HTTP/1.1\r\nHost: a\r\n\r\n
refused 400 GET /v2 HTTP/1.1\nHost: a\r\n\r\n
body .*request line: expected CR LF behind the HTTP version, got LF.*
refused 400 GET /v2 HTTP/1.1\r\nHost: a\n\r\n
body .*field line 1: expected text and CR LF, got LF.*
refused 400 GET /v2 HTTP/1.1\r\nHost: a\r\n\n
body .*field line 2: expected a name or the empty line, got LF.*
refused 400 GET /v2 HTTP/1.1\nHost: a\n\n
refused 400 GET /v2 HTTP/1.1\rHost: a\r\n\r\n
refused 400 GET /v2 HTTP/1.1\r\r\nHost: a\r\n\r\n
refused 400 GET /v2 HTTP/1.1\r\nHost: a\r\r\n\r\n
refused 400 GET /v2 HTTP/1.1\r\nHost: a\r\n\r\r\n
refused 400 GET /v2 HTTP/1.1\r\nHost: a\r\n\rx
refused 400 GET /v2 HTTP/1.1\r\nHost: a\rX: y\r\n\r\n
refused 400 GET /v2 HTTP/1.1\n\r\n

play empty lines before a request
before \r\n
accepted GET /v2 HTTP/1.1\r\nHost: a\r\n\r\n
accepted \r\n\r\nGET /v2 HTTP/1.1\r\nHost: a\r\n\r\n
refused 400 \nGET /v2 HTTP/1.1\r\nHost: a\r\n\r\n
refused 400 \rGET /v2 HTTP/1.1\r\nHost: a\r\n\r\n
refused 400 \r\r\nGET /v2 HTTP/1.1\r\nHost: a\r\n\r\n
refused 400 \x20\r\nGET /v2 HTTP/1.1\r\nHost: a\r\n\r\n

play field names
before GET /v2 HTTP/1.1\r\nHost: a\r\n
behind \r\n\r\n
accepted X: y
accepted X:y
accepted X:
accepted X: \x20\t\x20
accepted X::
accepted !#$%&'*+-.^_`|~09azAZ: y
refused 400 : y
body .*field line 2: expected a name or the empty line, got ':'.*
refused 400 :
refused 400 \x20: y
refused 400 X : y
body .*field line 2: expected ':' behind the name, got a space.*
refused 400 X\t: y
refused 400 X\x00: y
refused 400 X\x7f: y
refused 400 X\xe4: y
refused 400 X Y: y
refused 400 X(: y
refused 400 "X": y
refused 400 X/Y: y
refused 400 X@Y: y
refused 400 [X]: y
refused 400 X
body .*field line 2: expected ':' behind the name, got CR.*
refused 400 X=y
refused 400 Content-Length : 0
refused 400 Transfer-Encoding : chunked

play field values
before GET /v2 HTTP/1.1\r\nHost: a\r\nX:
behind \r\n\r\n
accepted \ta\tb\t
accepted a\xffb\x80
accepted ()<>@,;:\\"/[]?={}
refused 400 a\x00b
body .*field line 2: expected text and CR LF, got byte 0x00.*
refused 400 \x01
refused 400 a\x08b
refused 400 a\x0bb
refused 400 a\x0cb
refused 400 a\x1bb
refused 400 a\x7fb
refused 400 a\rb
refused 400 a\nb

play folded lines
behind \r\n\r\n
refused 400 GET /v2 HTTP/1.1\r\n Host: a
refused 400 GET /v2 HTTP/1.1\r\n\tHost: a
refused 400 GET /v2 HTTP/1.1\r\n \r\nHost: a
refused 400 GET /v2 HTTP/1.1\r\nHost: a\r\nX: y\r\n z
body .*field line 3: expected a name or the empty line, got a space.*
refused 400 GET /v2 HTTP/1.1\r\nHost: a\r\nX: y\r\n\tz
refused 400 GET /v2 HTTP/1.1\r\nHost: a\r\nX:\r\n y
refused 400 GET /v2 HTTP/1.1\r\nHost: a\r\nX: y\r\n\x20
refused 400 GET /v2 HTTP/1.1\r\nHost:\r\n a
refused 400 GET /v2 HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n 0
refused 400 GET /v2 HTTP/1.1\r\nHost: a\r\nConnection:\r\n close

play a folded Transfer-Encoding does not begin a second message
refused 400 POST /v2/models/add/infer HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n
refused 400 POST /v2/models/add/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n
refused 400 POST /v2/models/add/infer HTTP/1.1\r\nHost: a\r\nX: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n

play Host
before GET /v2 HTTP/1.1\r\n
behind \r\n\r\n
accepted Host: a
accepted Host:a
accepted Host: a\t
accepted Host: \ta:80\x20
accepted Host: [::1]:80
accepted Host:
refused 400 X: y
refused 400 Host: a\r\nHost: a
refused 400 Host: a\r\nhost: b
refused 400 Host: a b
refused 400 Host: a\tb
refused 400 Host: a, b
refused 400 Host: a/b
refused 400 Host: u@a
refused 400 Host : a

play Content-Length
before GET /v2 HTTP/1.1\r\nHost: a\r\nContent-Length:
behind \r\n\r\nabc
accepted 3
accepted \x203
accepted \t3
accepted \x203\x20
accepted \x203\t
accepted \x203\x20\t\x20
accepted 0003
accepted 000000000000000000000000000000000000000003
refused 400
body .*field line 2: .*Content-Length.*
refused 400 \x20
refused 400 +3
refused 400 -3
refused 400 0x3
refused 400 3.0
refused 400 3e0
refused 400 3_
refused 400 "3"
refused 400 '3'
refused 400 3h
refused 400 3 3
refused 400 3\t3
refused 400 3,3
refused 400 3, 3
refused 400 ,3
refused 400 3,
refused 400 3;
refused 400 three
refused 400 \xb3
refused 400 18446744073709551616
refused 400 18446744073709551619
refused 400 99999999999999999999999999999999999999
refused 413 18446744073709551615
refused 413 9223372036854775808

play Content-Length more than once
before GET /v2 HTTP/1.1\r\nHost: a\r\n
behind \r\n\r\nabc
refused 400 Content-Length: 3\r\nContent-Length: 3
refused 400 Content-Length: 3\r\nContent-Length: 0
refused 400 Content-Length: 3\r\ncontent-length: 3
refused 400 Content-Length: 3\r\nX: y\r\nCONTENT-LENGTH: 4

play Transfer-Encoding
before GET /v2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:
behind \r\n\r\n3\r\nabc\r\n0\r\n\r\n
accepted chunked
accepted \x20Chunked
accepted \x20CHUNKED
accepted \tchunked
accepted \x20chunked\x20
accepted \x20chunked\t
accepted \x20chunked\x20\t\x20
refused 400 chunked, chunked
refused 400 chunked,
refused 400 chunked, gzip
refused 400 chunked, identity
refused 400 chunked\x0b
refused 400 \x00chunked
refused 501
refused 501 ,chunked
refused 501 gzip, chunked
refused 501 gzip,\tchunked
refused 501 identity
refused 501 identity, chunked
refused 501 gzip
refused 501 xchunked
refused 501 chunkedx
refused 501 chunk
refused 501 chu nked
refused 501 chu\tnked
refused 501 "chunked"
refused 501 chunked;a=b

play Transfer-Encoding beside other fields
before GET /v2 HTTP/1.1\r\nHost: a\r\n
behind \r\n\r\n3\r\nabc\r\n0\r\n\r\n
refused 400 Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked
refused 400 Transfer-Encoding: chunked\r\nTransfer-Encoding: identity
refused 400 Transfer-Encoding: identity\r\nContent-Length: 3
refused 400 Transfer-Encoding: chunked\r\nContent-Length: 13
body .*expected one Content-Length and no Transfer-Encoding beside it.*
refused 400 Content-Length: 13\r\nTransfer-Encoding: chunked
body .*expected one Content-Length and no Transfer-Encoding beside it.*
refused 400 Transfer-Encoding: chunked\r\nContent-Length: 1x
body .*expected one Content-Length and no Transfer-Encoding beside it.*
refused 400 Content-Length: 13\r\nTransfer-Encoding: chunked\t
refused 400 Content-Length: 13\t\r\nX: y\r\ntransfer-encoding:chunked
accepted Transfer-Encodings: chunked\r\nTransfer-Encoding: chunked
accepted X-Content-Length: 5\r\nTransfer-Encoding: chunked

play Transfer-Encoding in HTTP/1.0
refused 400 POST /v2/models/add/infer HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n
refused 400 POST /v2/models/add/infer HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n

play chunk sizes
before GET /v2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n
behind \r\nabcdefghij\r\n0\r\n\r\n
accepted a
accepted A
accepted 0a
accepted 000000000000000a
accepted 0000000000000000000000000000000a
refused 400
body .*chunk 1: expected a hexadecimal size, got CR.*
refused 400 0xa
body .*chunk 1: expected a hexadecimal digit, ';' or CR LF, got 'x'.*
refused 400 +a
refused 400 -a
refused 400 \x20a
refused 400 \ta
refused 400 a\x20
refused 400 a\t
refused 400 ah
refused 400 a_
refused 400 _a
refused 400 a.
refused 400 a,
refused 400 a=
refused 400 "a"
refused 400 g
refused 400 a\x00
refused 400 a\x0b
refused 400 \xb2
refused 400 10000000000000000
body .*chunk 1: expected a size of at most 64 bits.*
refused 400 1000000000000000a
refused 413 ffffffffffffffff

play chunk extensions
before GET /v2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3
behind \r\nabc\r\n0\r\n\r\n
accepted ;a
accepted ;a=b
accepted ;a=b;c=d
accepted ;a;b;c
accepted ;a=b;c;d="e"
accepted ; a=b
accepted \x20;a=b
accepted \x20; a = b ; c
accepted \t;\ta\t=\tb\t;\tc
accepted ;a="b"
accepted ;a=""
accepted ;a="b;c\tde=\xe4(){}"
accepted ;a="b\\"c"
accepted ;a="\\\\"
accepted ;a="\\\\";b="\\"\\""
accepted ;a="\\b\\ \\\t\\\xe4"
accepted ;a="b" ;c
accepted ;!#$%&'*+-.^_`|~=!#$%&'*+-.^_`|~
refused 400 ;
body .*chunk 1: expected the name of an extension, got CR.*
refused 400 ; ;a
refused 400 ;;a
refused 400 ;=b
refused 400 ;a=
refused 400 ;a=;b
refused 400 ;a==b
refused 400 ;a=b=c
refused 400 ;a b
refused 400 ;a=b c
refused 400 ;a=b,c
refused 400 ;a\x20
refused 400 ;a=b\x20
refused 400 ;a="b"\x20
refused 400 ;a="b"c
refused 400 ;a="b
refused 400 ;a="b\\"
refused 400 ;a=b"c"
refused 400 ;a='b;
refused 400 ;a="b\x01"
refused 400 ;a="b\x7f"
refused 400 ;a="\\\x00"
refused 400 ;a="b\nc"
refused 400 ;a="b\rc"
refused 400 ;a\x00
refused 400 ;(a)
refused 400 ;"a"
refused 400 ;\xe4

play the ends of chunks
before GET /v2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n
accepted 3\r\nabc\r\n0\r\n\r\n
accepted 1\r\na\r\n2\r\nbc\r\n000\r\n\r\n
accepted 3\r\nabc\r\n0;a=b;c="d" ; e\r\n\r\n
accepted 0\r\n\r\n
refused 400 3\nabc\r\n0\r\n\r\n
refused 400 3\rabc\r\n0\r\n\r\n
refused 400 3\r\rabc\r\n0\r\n\r\n
refused 400 3;a\nabc\r\n0\r\n\r\n
refused 400 3\r\nabc\n0\r\n\r\n
body .*chunk 1: expected CR LF behind the data, got LF.*
refused 400 3\r\nabc\r0\r\n\r\n
refused 400 3\r\nabc0\r\n\r\n
refused 400 3\r\nabcd\r\n0\r\n\r\n
refused 400 3\r\nab\r\n0\r\n\r\n
refused 400 3\r\nabc\r\n\r\n0\r\n\r\n
refused 400 3\r\nabc\r\n 0\r\n\r\n
refused 400 3\r\nabc\r\n0\n\r\n
body .*chunk 2: .*got LF.*
refused 400 3\r\nabc\r\n0\r\n\n
body .*trailer line 1: expected a name or the empty line, got LF.*
refused 400 3\r\nabc\r\n0\n\n
refused 400 3\r\nabc\r\n0\r\n\rx
refused 400 3\r\nabc\r\n0\r\n\r\r\n

play trailers are checked and change nothing
before GET /v2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n
behind \r\n\r\n
accepted X: y
accepted X:
accepted X: y\r\nX: \ty\t
accepted Content-Length: 5
accepted Content-Length: nonsense
accepted Transfer-Encoding: chunked
accepted Transfer-Encoding: gzip
accepted Content-Encoding: gzip
accepted Connection: close
accepted Host: b
accepted Expect: 100-continue
accepted Inference-Header-Content-Length: 1
accepted Upgrade: h2c\r\nConnection: upgrade
refused 400 : y
body .*trailer line 1: expected a name or the empty line, got ':'.*
refused 400 X : y
refused 400 X
refused 400 \x20X: y
refused 400 X: y\r\n z
body .*trailer line 2: expected a name or the empty line, got a space.*
refused 400 X: y\r\n\tz
refused 400 X: y\nZ: z
refused 400 X: y\rZ: z
refused 400 X: \x00
refused 400 X: \x7f
refused 400 X\x00: y
refused 400 X(: y
refused 400 0

play white space around Connection
>> GET /v2 HTTP/1.1\r\nHost: a\r\nConnection: close\t\r\n\r\nGET /v2 HTTP/1.1\r\nHost: a\r\n\r\n
< 200
field Connection: close
closed
connect
>> GET /v2 HTTP/1.1\r\nHost: a\r\nConnection:\tclose \t \r\n\r\nGET /v2 HTTP/1.1\r\nHost: a\r\n\r\n
< 200
closed
connect
>> GET /v2 HTTP/1.1\r\nHost: a\r\nConnection: x\t,\tclose\t\r\n\r\nGET /v2 HTTP/1.1\r\nHost: a\r\n\r\n
< 200
closed
connect
>> GET /v2 HTTP/1.0\r\nConnection: keep-alive\t\r\n\r\nGET /v2 HTTP/1.0\r\n\r\n
< 200
field Connection: keep-alive
< 200
closed

play bodies of methods that need none
>> GET /v2 HTTP/1.1\r\nHost: a\r\nContent-Length: 43\r\n\r\nGET /nowhere HTTP/1.1\r\nHost: smuggled\r\n\r\nGET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n
< 200
< 400
connect
>> HEAD /v2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n
<HEAD 200
< 200
json {"live": true}
connect
>> DELETE /v2 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n
< 405
< 200
json {"live": true}

play the content of a body is not parsed as a request
> POST /v2/models/add/infer HTTP/1.1
> Host: a
> Content-Length: 4
>
>> \r\n\x00\xffGET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n
< 400
< 200
json {"live": true}

play refused requests are skipped in every framing
before POST /nowhere HTTP/1.1\r\nHost: a\r\n
>> POST /nowhere HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;a="\\"" ; b\r\nabc\r\n0\r\nContent-Length: 5\r\n\r\nGET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n
< 404
< 200
json {"live": true}
connect
>> POST /nowhere HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\n0\r\n\r\n
< 404
closed

play a length in a trailer does not move the end of a body
> POST /v2/models/add/infer HTTP/1.1
> Host: a
> Transfer-Encoding: chunked
>
>> fdf2\r\n
>* 65010 x
>> \r\n0\r\nContent-Length: 5\r\nX
wait 0.3
>> :
>* 3000 y
>> \r\n\r\n
< 400
get /v2/health/live
< 200

play a length in a trailer does not move the end of a body in the ring
> POST /v2/models/add/infer HTTP/1.1
> Host: a
> Transfer-Encoding: chunked
>
>> 30d40\r\n
>* 200000 x
>> \r\n0\r\nContent-Length: 5\r\nInference-Header-Content-Length: 1\r\nX
wait 0.3
>> :
>* 3000 y
>> \r\n\r\n
< 400
get /v2/health/live
< 200
