# Requests whose framing is wrong: one answer, then the connection is closed.
model add

play Content-Length and Transfer-Encoding
>> POST /v2/models/add/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n
< 400
closed

play Transfer-Encoding and Content-Length
>> POST /v2/models/add/infer HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n
< 400
closed

play two Content-Lengths
>> POST /v2/models/add/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc
< 400
closed

play Content-Lengths that are not numbers
>> POST /v2/models/add/infer HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n
< 400
closed
connect
>> POST /v2/models/add/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 0x10\r\n\r\n
< 400
closed
connect
>> POST /v2/models/add/infer HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc
< 400
closed
connect
>> POST /v2/models/add/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\n
< 400
closed

play codings before chunked
>> POST /v2/models/add/infer HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n
< 501
closed

play a coding that is not chunked
>> POST /v2/models/add/infer HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n
< 501
closed

play Transfer-Encoding twice
>> POST /v2/models/add/infer HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n
< 400
closed

play Transfer-Encoding in HTTP/1.0
>> POST /v2/models/add/infer HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n
< 400
closed

play a chunk size that is not a number
>> POST /v2/models/add/infer HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n
< 400
closed

play a chunk size that never ends
>> POST /v2/models/add/infer HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n
< 400
closed

play a chunk that is longer than its size
>> POST /v2/models/add/infer HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n
< 400
closed

play no Host
>> GET /v2 HTTP/1.1\r\n\r\n
< 400
closed

play two Hosts
>> GET /v2 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n
< 400
closed

play invalid Hosts
>> GET /v2 HTTP/1.1\r\nHost: a/b\r\n\r\n
< 400
closed
connect
>> GET /v2 HTTP/1.1\r\nHost: u@a\r\n\r\n
< 400
closed

play unsupported versions
>> GET /v2 HTTP/2.0\r\nHost: a\r\n\r\n
< 505
closed
connect
>> GET /v2 HTTP/0.9\r\nHost: a\r\n\r\n
< 505
closed
connect
>> GET /v2\r\n\r\n
< 505
closed
connect
>> PRI * HTTP/2.0\r\n\r\nSN\r\n\r\n
< 505
closed

play white space where it is not allowed
>> GET /v2 HTTP/1.1\r\nHost : a\r\n\r\n
< 400
closed
connect
>> GET /v2 HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n
< 400
closed

play NUL and bare CR in a field
>> GET /v2 HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n
< 400
closed
connect
>> GET /v2 HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n
< 400
closed

play garbage
>> \x16\x03\x01\x02\x00\x01\x00
< 400
closed
